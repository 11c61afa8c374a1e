package ucm.cli.trace;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import ucm.cli.output.UsageException;
import ucm.lite.curve.TraceSummary;

/**
 * Capacities as users write them: {@code 5000} blocks, {@code 5%} of the distinct blocks, {@code
 * 50Mtokens}, {@code 500GB}.
 */
final class CapacityList {

  static final String HELP = "5000 (blocks), 5%% (of the distinct blocks), 50Mtokens, 500GB";

  private static final Pattern FORM =
      Pattern.compile("([0-9]+(?:\\.[0-9]+)?)(%|[kmg]?tokens|[kmgt]b)?");
  private static final long[] BLOCKS = {1, 100, 1000, 10_000, 30_000, 50_000, 100_000, 150_000};
  private static final long[] TOKENS = {3_000_000, 50_000_000};
  private static final int[] PERCENT = {1, 5, 10, 25, 50, 100};

  private final List<Matcher> written;

  CapacityList(List<String> written) {
    this.written = written.stream().map(CapacityList::form).toList();
  }

  private static Matcher form(String capacity) {
    Matcher form = FORM.matcher(capacity.strip().toLowerCase(Locale.ROOT));
    UsageException.when(
        !form.matches(),
        "a capacity is written like " + HELP.replace("%%", "%") + "; found " + capacity);
    return form;
  }

  boolean needsModel() {
    return written.stream().anyMatch(form -> form.group().endsWith("b"));
  }

  /** The capacities in blocks, growing. */
  long[] blocks(TraceSummary summary, long blockBytes) {
    Set<Long> chosen = new TreeSet<>();
    written.forEach(form -> chosen.add(blocks(form, summary, blockBytes)));
    if (written.isEmpty()) {
      addDefaults(chosen, summary);
    }
    return chosen.stream().mapToLong(Long::longValue).toArray();
  }

  private static long blocks(Matcher form, TraceSummary summary, long blockBytes) {
    double number = Double.parseDouble(form.group(1));
    String unit = form.group(2);
    if (unit == null) {
      return Math.round(number);
    }
    if (unit.equals("%")) {
      return Math.round(summary.uniqueBlocks() * number / 100);
    }
    double scale =
        switch (unit.charAt(0)) {
          case 'k' -> 1e3;
          case 'm' -> 1e6;
          case 'g' -> 1e9;
          default -> unit.endsWith("b") ? 1e12 : 1;
        };
    long size = unit.endsWith("b") ? blockBytes : summary.blockTokens();
    return (long) (number * scale / Math.max(1, size));
  }

  private static void addDefaults(Set<Long> chosen, TraceSummary summary) {
    for (long blocks : BLOCKS) {
      chosen.add(blocks);
    }
    for (long tokens : TOKENS) {
      chosen.add(tokens / Math.max(1, summary.blockTokens()));
    }
    for (int percent : PERCENT) {
      chosen.add(Math.round(summary.uniqueBlocks() * percent / 100.0));
    }
    // More than everything hits no more than everything.
    chosen.removeIf(blocks -> blocks > summary.uniqueBlocks() || blocks == 0);
  }
}
