package ucm.store.cache.shared;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import ucm.platform.memory.SharedFile;

/** The first page of a segment: what it is, for whom, and that it is finished. */
final class SegmentHeader {

  private SegmentHeader() {}

  /** Writes the header of a segment that is otherwise finished. */
  static void write(SegmentWords words, SegmentLayout layout, long[] bootId) {
    words.set(SegmentLayout.MAGIC_AT, SegmentLayout.MAGIC);
    words.setInt(SegmentLayout.VERSION_AT, SegmentLayout.VERSION);
    words.set(SegmentLayout.BOOT_HIGH_AT, bootId[0]);
    words.set(SegmentLayout.BOOT_LOW_AT, bootId[1]);
    words.set(SegmentLayout.BYTES_AT, layout.byteSize());
    words.set(SegmentLayout.SHARD_SIZE_AT, layout.shardSize());
    words.setInt(SegmentLayout.SHARDS_AT, layout.shards());
    words.setInt(SegmentLayout.SLABS_AT, layout.slabs());
    words.setInt(SegmentLayout.STRIPES_AT, layout.stripes());
    words.set(SegmentLayout.FINGERPRINT_AT, layout.fingerprint());
    // Last: a segment whose maker died on the way is never ready.
    words.setInt(SegmentLayout.READY_AT, 1);
  }

  /** How a segment differs from what this process would make; empty when it does not. */
  static Optional<String> difference(SharedFile file, SegmentLayout layout, long[] bootId) {
    long size = file.byteSize();
    if (size < SegmentLayout.HEADER_BYTES) {
      return Optional.of("it has " + size + " bytes, less than the header of a segment");
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment page = file.map(SegmentLayout.HEADER_BYTES, arena);
      SegmentWords words = new SegmentWords(page);
      if (words.get(SegmentLayout.MAGIC_AT) != SegmentLayout.MAGIC) {
        return Optional.of("it does not begin as a segment of UCM does");
      }
      int version = words.getInt(SegmentLayout.VERSION_AT);
      if (version != SegmentLayout.VERSION) {
        return Optional.of(
            "it has version " + version + " of the layout; this UCM has " + SegmentLayout.VERSION);
      }
      if (words.getInt(SegmentLayout.READY_AT) != 1) {
        return Optional.of("it was never finished");
      }
      if (words.get(SegmentLayout.BOOT_HIGH_AT) != bootId[0]
          || words.get(SegmentLayout.BOOT_LOW_AT) != bootId[1]) {
        return Optional.of("it was made before the machine was restarted");
      }
      return sizes(words, layout, size);
    }
  }

  private static Optional<String> sizes(SegmentWords words, SegmentLayout layout, long size) {
    List<String> found = new ArrayList<>();
    compare(found, "shard_size", words.get(SegmentLayout.SHARD_SIZE_AT), layout.shardSize());
    compare(found, "shards a block", words.getInt(SegmentLayout.SHARDS_AT), layout.shards());
    compare(found, "blocks in the buffer", words.getInt(SegmentLayout.SLABS_AT), layout.slabs());
    compare(found, "stripes", words.getInt(SegmentLayout.STRIPES_AT), layout.stripes());
    compare(found, "bytes", words.get(SegmentLayout.BYTES_AT), layout.byteSize());
    compare(found, "bytes of the file", size, layout.byteSize());
    if (found.isEmpty() && words.get(SegmentLayout.FINGERPRINT_AT) != layout.fingerprint()) {
      found.add("other tensor sizes");
    }
    return found.isEmpty() ? Optional.empty() : Optional.of(String.join(", ", found));
  }

  private static void compare(List<String> found, String what, long there, long here) {
    if (there != here) {
      found.add(what + " " + there + " there and " + here + " here");
    }
  }
}
