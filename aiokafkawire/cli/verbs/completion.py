"""``aiokafkawire completion``: prints the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from ..shell.app import COMPLETE, PROGRAM, root_command
from ..shell.command import ShellCommand
from ..shell.output import write_output
from ..shell.shared_options import SharedOptions

__all__ = ("command",)


@click.command(
    cls=ShellCommand,
    connects=False,
    examples=(
        "aiokafkawire completion bash >> ~/.bashrc",
        "aiokafkawire completion zsh >> ~/.zshrc",
        "aiokafkawire completion fish > ~/.config/fish/completions/aiokafkawire.fish",
    ),
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(_: SharedOptions, *, shell: str) -> int:
    """Print the completion script of bash (4.4 and later), zsh or fish.

    The shell then completes commands, options and file names.
    """
    completion = get_completion_class(shell)
    assert completion is not None
    # ShellComplete.source() of bash would start bash to see its version.
    script = completion(root_command(), {}, PROGRAM, COMPLETE)
    write_output((completion.source_template % script.source_vars()).encode())
    return 0
