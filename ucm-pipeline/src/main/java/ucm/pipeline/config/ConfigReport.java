package ucm.pipeline.config;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Everything found in one check of a configuration, in the order of the file. Immutable. */
public final class ConfigReport {

  private final List<ConfigFinding> findings;

  public ConfigReport(List<ConfigFinding> findings) {
    this.findings = findings.stream().distinct().sorted(ConfigFinding.BY_PLACE).toList();
  }

  /** The findings, sorted by position. */
  public List<ConfigFinding> findings() {
    return findings;
  }

  /** Whether the configuration cannot be used. */
  public boolean hasErrors() {
    return errors() > 0;
  }

  /** How many errors. */
  public int errors() {
    return (int) findings.stream().filter(ConfigFinding::isError).count();
  }

  /** How many warnings. */
  public int warnings() {
    return findings.size() - errors();
  }

  /** One line per finding, then how many there are; no line end after the last. */
  public String text() {
    return findings.stream().map(finding -> finding + "\n").collect(Collectors.joining())
        + count(errors(), "error")
        + ", "
        + count(warnings(), "warning");
  }

  /** The same as plain maps, lists, texts and numbers, for JSON. */
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("errors", errors());
    data.put("warnings", warnings());
    data.put("findings", findings.stream().map(ConfigFinding::data).toList());
    return data;
  }

  private static String count(int number, String noun) {
    return number + " " + noun + (number == 1 ? "" : "s");
  }

  @Override
  public String toString() {
    return text();
  }
}
