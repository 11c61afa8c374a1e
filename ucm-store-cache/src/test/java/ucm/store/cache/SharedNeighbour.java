package ucm.store.cache;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import ucm.api.BlockLayout;
import ucm.testkit.MemoryStore;

/**
 * A process that attaches to shared buffers and stays. A line is {@code leave}, or a unique_id, a
 * capacity in GiB, a block size and the tensor sizes of a shard; each is answered with {@code ok}.
 */
final class SharedNeighbour {

  private SharedNeighbour() {}

  /** What tells it to attach. */
  static String line(String uniqueId, double gib, BlockLayout layout) {
    StringBuilder line = new StringBuilder(uniqueId + " " + gib + " " + layout.blockSize());
    for (int tensor = 0; tensor < layout.tensorCount(); tensor++) {
      line.append(' ').append(layout.tensorSize(tensor));
    }
    return line.toString();
  }

  public static void main(String[] arguments) throws Exception {
    List<TestCache> open = new ArrayList<>();
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      if (line.equals("leave")) {
        open.forEach(TestCache::close);
        open.clear();
      } else {
        open.add(attach(line.split(" ", -1)));
      }
      System.out.println("ok");
      System.out.flush();
    }
  }

  private static TestCache attach(String[] words) {
    long[] tensors = Stream.of(words).skip(3).mapToLong(Long::parseLong).toArray();
    BlockLayout layout = BlockLayout.of(tensors, Long.parseLong(words[2]));
    Map<String, Object> settings =
        Map.of(
            "share_buffer_enable",
            true,
            "unique_id",
            words[0],
            "cache_buffer_capacity_gb",
            Double.parseDouble(words[1]));
    return new TestCache(layout, new MemoryStore(new MemoryStore.Medium()), 0, settings);
  }
}
