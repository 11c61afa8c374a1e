package ucm.store.ds3fs;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;

/** Settings that a machine without much memory can hold. */
final class SmallHf3fs {

  private static final long IOV_BYTES = 16 << 20;

  private SmallHf3fs() {}

  static Map<String, Object> settings(Path directory) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("storage_backends", directory.toString());
    settings.put("stream_number", 4);
    settings.put("iov_read_size", IOV_BYTES);
    settings.put("iov_write_size", IOV_BYTES);
    settings.put("ds3fs_library_path", SimulatedHf3fs.LIBRARY.toString());
    return settings;
  }
}
