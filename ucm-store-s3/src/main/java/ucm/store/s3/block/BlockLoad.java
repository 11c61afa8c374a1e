package ucm.store.s3.block;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.file.format.BlockFooter;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * Loads shards of a block that follow one another, by one request for their range. Each is compared with its
 * checksum while it is copied; one that differs is asked for once more, as it may have been damaged on the way,
 * and is corrupt when it differs again.
 */
public final class BlockLoad implements ObjectRequest.Sink {

  private static final Logger LOG = LoggerFactory.getLogger(BlockLoad.class);
  // Copied and summed at a time: little enough to be summed in the processor's cache, and so much
  // that a step costs nothing.
  private static final int STEP = 1 << 18;
  private static final int RANGE_NOT_SATISFIABLE = 416;

  private final Bucket bucket;
  private final TransferTask task;
  private final Transfer transfer;
  private final int from;
  private final int count;
  private final BlockIds id;
  private final String key;
  private final long removals;
  // Used by the thread that has the request, one after the other.
  private final BitSet begun = new BitSet();
  private final BitSet loaded = new BitSet();
  private final CRC32C crc = new CRC32C();
  private int @Nullable [] crcs;
  private String reason = "";
  private boolean again;
  private int shard;
  private int piece;
  private long within;

  /** Loads shards {@code from} to {@code from + count} of a transfer. */
  public BlockLoad(Bucket bucket, TransferTask task, int from, int count) {
    this.bucket = bucket;
    this.task = task;
    this.transfer = task.transfer();
    this.from = from;
    this.count = count;
    this.id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    this.key = bucket.format().key(id.high(0), id.low(0));
    this.removals = bucket.known().removals();
  }

  /** Waits for its turn. */
  public void start() {
    bucket.window().add(this::send);
  }

  private void send() {
    for (int i = from; i < from + count; i++) {
      if (task.begin(i)) {
        begun.set(i);
      }
    }
    if (begun.isEmpty()) {
      bucket.window().ended(false);
    } else {
      ask();
    }
  }

  private void ask() {
    shard = from;
    piece = 0;
    within = 0;
    crc.reset();
    bucket.metrics().getRequests.increment();
    long size = transfer.layout().shardSize();
    ObjectRequest request =
        ObjectRequest.get(key, transfer.shardIndex(from) * size, count * size, this);
    bucket.ask(request, task.deadlineNanos(), this::answered);
  }

  @Override
  public void begin(ObjectReply head) {
    reason = "";
    if (head.objectSize() != bucket.format().objectSize()) {
      crcs = null;
      reason =
          "it has %s bytes, a block of this layout %s"
              .formatted(head.objectSize(), bucket.format().objectSize());
    } else if (crcs == null) {
      crcs = bucket.format().shardCrcs(head, id.high(0), id.low(0));
      reason = crcs == null ? "its metadata are not those of this block" : "";
    }
  }

  @Override
  public void accept(ByteBuffer bytes) {
    int[] expected = crcs;
    MemorySegment given = MemorySegment.ofBuffer(bytes);
    int start = bytes.position();
    int end = bytes.limit();
    while (expected != null && bytes.position() < end && shard < from + count) {
      long size = transfer.pieceSize(piece);
      int at = bytes.position();
      int step = (int) Math.min(Math.min(end - at, STEP), size - within);
      if (begun.get(shard) && !loaded.get(shard)) {
        MemorySegment.copy(given, at - start, transfer.segment(shard, piece), within, step);
        crc.update(bytes.limit(at + step));
        bytes.limit(end);
      } else {
        bytes.position(at + step);
      }
      within += step;
      if (within == size) {
        within = 0;
        piece++;
        if (piece == transfer.pieceCount()) {
          compare(expected);
        }
      }
    }
  }

  private void compare(int[] expected) {
    int index = transfer.shardIndex(shard);
    int computed = (int) crc.getValue();
    if (begun.get(shard) && !loaded.get(shard)) {
      if (computed == expected[index]) {
        loaded.set(shard);
      } else {
        reason =
            BlockFooter.differs(
                "shard " + index + " is damaged: its CRC32C", expected[index], computed);
      }
    }
    crc.reset();
    piece = 0;
    shard++;
  }

  private void answered(ObjectReply reply) {
    boolean bad = !reason.isEmpty() || reply.status() == RANGE_NOT_SATISFIABLE;
    if (loaded.cardinality() == begun.cardinality()) {
      bucket.known().seen(id, removals);
      bucket.refresh().loaded(bucket.client(), key, reply);
      end(reply, ShardOutcome.FAILED, null);
    } else if (reply.ok() && crcs == null && ObjectFormat.isBare(reply) && !again) {
      askForFooter();
    } else if (bad && !again) {
      again = true;
      ask();
    } else if (bad) {
      bucket.known().damaged(id);
      bucket.metrics().corruptBlocks.increment();
      LOG.warn(
          "S3: object {} is no whole block and is not used: {}; the next dump of it replaces it",
          key,
          reason.isEmpty() ? reply.describe() : reason);
      end(reply, ShardOutcome.CORRUPT, null);
    } else if (reply.isMissing()) {
      bucket.known().forget(id);
      bucket.metrics().missingShards.add(begun.cardinality() - loaded.cardinality());
      end(reply, ShardOutcome.MISSING, null);
    } else {
      StoreException fault = bucket.fault("load", id, reply);
      end(reply, bucket.outcome(reply, task.deadlineNanos()), fault);
    }
  }

  /** Reads the checksums of an object without metadata, which a tool may have brought. */
  private void askForFooter() {
    again = true;
    BlockFooter footer = bucket.format().footer();
    BlockFooter.Buffer buffer = footer.newBuffer();
    ByteBuffer into = buffer.segment().asByteBuffer();
    ObjectRequest request =
        ObjectRequest.get(key, footer.offset(), footer.byteSize(), ObjectRequest.Sink.into(into));
    bucket.ask(
        request,
        task.deadlineNanos(),
        reply -> {
          boolean whole = reply.ok() && !into.hasRemaining();
          String fault = whole ? footer.fault(buffer, id.high(0), id.low(0)) : reply.describe();
          if (fault == null) {
            crcs = footer.shardCrcs(buffer, new int[transfer.layout().shardCount()]);
            ask();
          } else {
            reason = fault;
            answered(reply);
          }
        });
  }

  private void end(ObjectReply reply, ShardOutcome otherwise, @Nullable StoreException fault) {
    bucket.metrics().loadShards.add(loaded.cardinality());
    bucket.metrics().loadBytes.add(loaded.cardinality() * transfer.layout().shardSize());
    try {
      for (int i = begun.nextSetBit(0); i >= 0; i = begun.nextSetBit(i + 1)) {
        task.end(i, loaded.get(i) ? ShardOutcome.OK : otherwise, loaded.get(i) ? null : fault);
      }
    } finally {
      bucket.window().ended(reply.isSlowDown());
    }
  }
}
