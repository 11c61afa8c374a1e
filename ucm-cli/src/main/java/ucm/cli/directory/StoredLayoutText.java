package ucm.cli.directory;

import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.StoredLayout;

/** The layout of stored blocks, for people and programs. */
final class StoredLayoutText {

  private StoredLayoutText() {}

  static String of(StoredLayout layout) {
    return "tensor %s / shard %s / block %s"
        .formatted(
            layout.tensorSize() == 0 ? "of several sizes" : layout.tensorSize(),
            layout.shardSize(),
            layout.blockSize());
  }

  static @Nullable Map<String, Object> data(@Nullable StoredLayout layout) {
    if (layout == null) {
      return null;
    }
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("tensor_size", layout.tensorSize() == 0 ? null : layout.tensorSize());
    data.put("tensors_per_shard", layout.tensorCount());
    data.put("shard_size", layout.shardSize());
    data.put("shards_per_block", layout.shardCount());
    data.put("block_size", layout.blockSize());
    return data;
  }
}
