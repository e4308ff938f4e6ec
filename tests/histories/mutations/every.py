"""All mutations."""

from .mutation import Mutation
from .of_consumers import CONSUMERS
from .of_groups import GROUPS
from .of_processing import PROCESSING
from .of_producers import PRODUCERS
from .of_share import SHARE
from .of_transactions import TRANSACTIONS

__all__ = ("MUTATIONS",)

MUTATIONS: tuple[Mutation, ...] = (*PRODUCERS, *TRANSACTIONS, *CONSUMERS, *GROUPS, *PROCESSING, *SHARE)
