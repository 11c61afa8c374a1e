package ucm.store.s3.block;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import ucm.api.BlockIds;
import ucm.store.file.format.BlockFooter;
import ucm.store.s3.client.ObjectRequest;

/** The bytes of a block's object, where they lie in memory: shards, a gap, and the footer. */
final class ObjectBody implements ObjectRequest.Source {

  private static final MemorySegment ZEROS = Arena.global().allocate(BlockFooter.ALIGNMENT);

  final BlockIds id;
  final Map<String, String> headers;
  private final List<MemorySegment> pieces;
  // Where the next bytes are, so that a body is walked through once.
  private int piece;
  private long within;
  private long position;

  /**
   * The object of a block.
   *
   * @param shards the block's bytes in order
   * @param crcs the CRC32C of each shard
   */
  ObjectBody(ObjectFormat format, BlockIds id, List<MemorySegment> shards, int[] crcs) {
    this.id = id;
    this.pieces = new ArrayList<>(shards);
    BlockFooter footer = format.footer();
    BlockFooter.Buffer buffer = footer.newBuffer();
    footer.write(buffer, id.high(0), id.low(0), crcs);
    CRC32C crc = new CRC32C();
    crc.update(buffer.segment().asByteBuffer());
    if (footer.gap() > 0) {
      pieces.add(ZEROS.asSlice(0, footer.gap()));
    }
    pieces.add(buffer.segment());
    this.headers = format.headers(id.high(0), id.low(0), crcs, (int) crc.getValue());
  }

  @Override
  public void copy(long offset, ByteBuffer into) {
    if (offset != position) {
      seek(offset);
    }
    while (into.hasRemaining() && piece < pieces.size()) {
      MemorySegment from = pieces.get(piece);
      int step = (int) Math.min(into.remaining(), from.byteSize() - within);
      MemorySegment.copy(from, within, MemorySegment.ofBuffer(into), 0, step);
      into.position(into.position() + step);
      within += step;
      position += step;
      if (within == from.byteSize()) {
        piece++;
        within = 0;
      }
    }
  }

  private void seek(long offset) {
    piece = 0;
    within = offset;
    position = offset;
    while (piece < pieces.size() && within >= pieces.get(piece).byteSize()) {
      within -= pieces.get(piece).byteSize();
      piece++;
    }
  }
}
