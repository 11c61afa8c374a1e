package ucm.cli.replay;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.Table;

/**
 * What became of the tokens of one request, or of several: asked = in HBM + found outside + missed, and
 * found = loaded + missed when loading. Used by one thread.
 */
final class RequestFunnel {

  enum MissReason {
    NEVER_STORED("never stored before in this replay"),
    EVICTED("stored before, and gone since"),
    CORRUPT("found damaged, now or before"),
    TOO_SHORT("fill no block, or the request is below persist_token_threshold"),
    NOT_USED("found, and left by hit_ratio or load_tokens_threshold"),
    STORE_DOWN("a store refused, failed, or did not answer in time");

    private final String text;

    MissReason(String text) {
      this.text = text;
    }

    private String key() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final Map<String, Long> found = new LinkedHashMap<>();
  private final Map<MissReason, Long> misses = new EnumMap<>(MissReason.class);
  long asked;
  long hbm;
  long loaded;
  long used;

  void find(String tier, long tokens) {
    found.merge(tier, tokens, Long::sum);
  }

  void miss(MissReason reason, long tokens) {
    misses.merge(reason, tokens, Long::sum);
  }

  long found() {
    return found.values().stream().mapToLong(Long::longValue).sum();
  }

  long missed(MissReason reason) {
    return misses.getOrDefault(reason, 0L);
  }

  Fields data() {
    Fields missed = new Fields();
    for (MissReason reason : MissReason.values()) {
      missed.put(reason.key(), missed(reason));
    }
    return new Fields()
        .with("asked_tokens", asked)
        .with("hbm_tokens", hbm)
        .with("found_tokens", found())
        .with("found_tokens_by_tier", found)
        .with("loaded_tokens", loaded)
        .with("used_tokens", used)
        .with("missed_tokens", missed);
  }

  Table table() {
    Map<String, Long> rows = new LinkedHashMap<>();
    rows.put("asked", asked);
    rows.put("in HBM", hbm);
    rows.put("found outside", found());
    found.forEach((tier, tokens) -> rows.put("  in " + tier, tokens));
    rows.put("loaded", loaded);
    rows.put("used", used);
    misses.forEach(
        (reason, tokens) -> {
          if (tokens > 0) {
            rows.put("missed: " + reason.text, tokens);
          }
        });
    return new Columns<Map.Entry<String, Long>>()
        .text("TOKENS", Map.Entry::getKey)
        .text("COUNT", row -> Figures.grouped(row.getValue()))
        .text("OF ASKED", row -> share(row.getValue()))
        .table(rows.entrySet());
  }

  private String share(long tokens) {
    return String.format(Locale.ROOT, "%.1f%%", asked == 0 ? 0.0 : 100.0 * tokens / asked);
  }
}
