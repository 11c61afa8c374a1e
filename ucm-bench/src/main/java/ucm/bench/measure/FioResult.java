package ucm.bench.measure;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * What fio measured.
 *
 * @param version of fio
 * @param engine how it read and wrote
 * @param writeGbs gigabytes per second of creating and writing
 * @param readGbs of reading
 */
public record FioResult(String version, String engine, double writeGbs, double readGbs) {

  /** For JSON. */
  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("version", version);
    data.put("engine", engine);
    data.put("write_gb_s", writeGbs);
    data.put("read_gb_s", readGbs);
    return data;
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s (%s) on files of the same size, once after the rounds: write %.2f GB/s, read %.2f GB/s",
        version,
        engine,
        writeGbs,
        readGbs);
  }
}
