import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Scanner;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Reads filters and topics in hex, one filter with its topics on each line, and says what Kafka 0.7 makes of them. */
class TopicFilters {
    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex.substring(1)), StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(" ");
            String regex = text(parts[0]).trim().replace(',', '|').replace(" ", "");
            regex = regex.replaceAll("^[\"']+", "").replaceAll("[\"']+$", "");
            StringBuilder found = new StringBuilder();
            try {
                Pattern pattern = Pattern.compile(regex);
                for (int at = 1; at < parts.length; at++) {
                    found.append(pattern.matcher(text(parts[at])).matches() ? "1" : "0");
                }
            } catch (PatternSyntaxException refused) {
                found.append("refused");
            }
            System.out.println(found);
        }
    }
}
