package ucm.store.posix;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.store.common.BlockFooter;
import ucm.store.common.IoVector;
import ucm.store.common.MemoryCrc;
import ucm.store.common.NativePath;

/** What one worker thread needs to move shards, made once and used over and over. */
final class IoScratch {

  final NativePath block = new NativePath();
  final NativePath temp = new NativePath();
  final NativePath folder = new NativePath();
  final IoVector vector = new IoVector();
  final ShardCursor cursor = new ShardCursor();
  final MemoryCrc crc = new MemoryCrc();
  final int[] crcs;
  final BlockFooter.Buffer footer;

  /** What is read from, or written to, the bytes between a block and its footer. */
  final MemorySegment gap;

  /** The block being read. */
  long idHigh;

  /** Its last eight bytes. */
  long idLow;

  /** Groups of shards seen so far, for checking a sample of them. */
  int groups;

  IoScratch(BlockFooter format) {
    crcs = new int[format.layout().shardCount()];
    footer = format.newBuffer();
    gap = Arena.ofAuto().allocate(Math.max(1, format.gap()));
  }

  /** Adds to the vector what stands behind a block: zeros up to the footer, and the footer. */
  void addFooter(BlockFooter format, long idHigh, long idLow, int[] shardCrcs) {
    format.write(footer, idHigh, idLow, shardCrcs);
    gap.fill((byte) 0);
    addFooterPlace(format);
  }

  /** Adds to the vector the place of what stands behind a block, to be read. */
  void addFooterPlace(BlockFooter format) {
    if (format.gap() > 0) {
      vector.add(gap);
    }
    vector.add(footer.segment());
  }
}
