package ucm.cli.replay;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import ucm.cli.output.Table;

/**
 * What became of the tokens of one request, or of several: asked = in HBM + found outside + missed, and
 * found = loaded + missed when loading. Used by one thread.
 */
final class RequestFunnel {

  private final Map<String, Long> found = new LinkedHashMap<>();
  private final Map<MissReason, Long> misses = new EnumMap<>(MissReason.class);
  private long asked;
  private long hbm;
  private long loaded;
  private long used;

  void ask(long tokens) {
    asked += tokens;
  }

  void hitHbm(long tokens) {
    hbm += tokens;
  }

  void find(String tier, long tokens) {
    found.merge(tier, tokens, Long::sum);
  }

  void load(long tokens) {
    loaded += tokens;
  }

  void use(long tokens) {
    used += tokens;
  }

  void miss(MissReason reason, long tokens) {
    misses.merge(reason, tokens, Long::sum);
  }

  long asked() {
    return asked;
  }

  long hbm() {
    return hbm;
  }

  long found() {
    return found.values().stream().mapToLong(Long::longValue).sum();
  }

  long loaded() {
    return loaded;
  }

  long used() {
    return used;
  }

  long missed(MissReason reason) {
    return misses.getOrDefault(reason, 0L);
  }

  /** As JSON. */
  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("asked_tokens", asked);
    data.put("hbm_tokens", hbm);
    data.put("found_tokens", found());
    data.put("found_tokens_by_tier", found);
    data.put("loaded_tokens", loaded);
    data.put("used_tokens", used);
    Map<String, Object> missed = new LinkedHashMap<>();
    for (MissReason reason : MissReason.values()) {
      missed.put(reason.key(), missed(reason));
    }
    data.put("missed_tokens", missed);
    return data;
  }

  /** Adds its rows to a table of three columns: what, tokens, and their share of those asked for. */
  void rows(Table table) {
    row(table, "asked", asked);
    row(table, "in HBM", hbm);
    row(table, "found outside", found());
    found.forEach((tier, tokens) -> row(table, "  in " + tier, tokens));
    row(table, "loaded", loaded);
    row(table, "used", used);
    for (MissReason reason : MissReason.values()) {
      if (missed(reason) > 0) {
        row(table, "missed: " + reason.text(), missed(reason));
      }
    }
  }

  private void row(Table table, String what, long tokens) {
    table.row(
        what,
        String.format(Locale.ROOT, "%,d", tokens),
        String.format(Locale.ROOT, "%.1f%%", asked == 0 ? 0.0 : 100.0 * tokens / asked));
  }
}
