package ucm.store.s3.admin;

import static java.util.stream.Collectors.toSet;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.DirectorySummary.LayoutCount;
import ucm.api.admin.ReadRateLimit;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.admin.WholeBlocks;
import ucm.platform.thread.OwnThreads;
import ucm.platform.thread.WorkThreads;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.format.StoredFooter;
import ucm.store.s3.admin.BucketBlocks.BlockObject;
import ucm.store.s3.admin.BucketBlocks.Listing;
import ucm.store.s3.block.BucketCollector;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ClientSettings;
import ucm.store.s3.client.ObjectList;
import ucm.store.s3.client.ObjectRequest;

/**
 * The administration of the blocks below a prefix of a bucket, with or without engines that use them. When an object was
 * last stored is all that tells its last use. Each call connects, and closes what it opened.
 *
 * @param nanos how long a request may take
 * @param capacity in bytes, which engines keep to; 0 when it is not configured
 * @param layout of blocks to be adopted that do not tell theirs; null when it is not configured
 */
public record BucketDirectories(
    ClientSettings settings, String prefix, long nanos, long capacity, @Nullable BlockLayout layout)
    implements StoreDirectories {

  private static final String QUARANTINE = "/.quarantine/";

  private BucketBlocks open() {
    return new BucketBlocks(settings, prefix, nanos);
  }

  private static long bytes(List<BlockObject> blocks) {
    return blocks.stream().mapToLong(BlockObject::size).sum();
  }

  @Override
  public WholeBlocks wholeBlocks() {
    return open();
  }

  @Override
  public List<DirectorySummary> summarize(Observer observer) {
    try (BucketBlocks bucket = open()) {
      return List.of(summary(bucket, bucket.layouts(observer::isStopped), observer));
    }
  }

  private DirectorySummary summary(BucketBlocks bucket, Listing found, Observer observer) {
    Map<StoredLayout, Long> layouts = new HashMap<>();
    Map<String, Long> folders = new HashMap<>();
    List<Instant> uses = new ArrayList<>();
    long payload = 0;
    long unverified = 0;
    long faulty = 0;
    for (BlockObject object : found.blocks()) {
      StoredBlock block = bucket.stored(object);
      folders.merge(object.folder(), 1L, Long::sum);
      uses.add(block.lastUse());
      if (block.fault() != null) {
        faulty++;
      } else if (block.layout() == null) {
        unverified++;
      } else {
        layouts.merge(block.layout(), 1L, Long::sum);
        payload += block.byteSize();
      }
      observer.at(uses.size(), found.blocks().size());
    }
    long quarantined =
        found.others().stream().filter(key -> key.startsWith(prefix + QUARANTINE)).count();
    boolean none = uses.isEmpty();
    return new DirectorySummary(
        bucket.address(prefix),
        none ? List.of("there are no blocks below this prefix") : List.of(),
        uses.size() - faulty,
        payload,
        bytes(found.blocks()),
        layouts.entrySet().stream()
            .map(count -> new LayoutCount(count.getKey(), count.getValue()))
            .sorted(Comparator.comparingLong(LayoutCount::blocks).reversed())
            .toList(),
        unverified,
        faulty,
        found.others().size() - quarantined,
        0,
        0,
        0,
        quarantined,
        none ? null : Collections.min(uses),
        none ? null : Collections.max(uses),
        folders.size(),
        none ? 0 : Collections.max(folders.values()),
        0,
        0,
        "lifecycle rules of the bucket, if there are any");
  }

  @Override
  public void list(Observer observer, Consumer<StoredBlock> visitor) {
    try (BucketBlocks bucket = open()) {
      long seen = 0;
      List<BlockObject> blocks = bucket.layouts(observer::isStopped).blocks();
      for (BlockObject object : blocks) {
        visitor.accept(bucket.stored(object));
        observer.at(++seen, blocks.size());
      }
    }
  }

  /** Blocks that several threads read, and what becomes of them. Thread-safe. */
  private static final class Reading {

    private final BucketBlocks bucket;
    private final Observer observer;
    private final Consumer<Damage> told;
    // Guarded by this.
    private long seen;
    private long good;
    private long goodBytes;
    private long without;
    private long verifiable;
    private long damaged;
    private long unreadable;

    Reading(BucketBlocks bucket, Observer observer, Consumer<Damage> told) {
      this.bucket = bucket;
      this.observer = observer;
      this.told = told;
    }

    /** Does some work on each of the blocks until it is stopped; the first fault ends it. */
    void run(int threads, Consumer<BlockObject> work) {
      List<BlockObject> blocks = bucket.layouts(observer::isStopped).blocks();
      long total = bytes(blocks);
      WorkThreads.forEach(
          new OwnThreads("ucm-s3-admin-", (_, _) -> {}),
          threads,
          blocks,
          observer::isStopped,
          block -> {
            work.accept(block);
            synchronized (this) {
              seen += block.size();
              observer.at(seen, total);
            }
          });
    }

    synchronized void good(BlockObject block) {
      good++;
      goodBytes += block.size();
    }

    synchronized void without() {
      without++;
    }

    synchronized void verifiable() {
      verifiable++;
    }

    synchronized void bad(BlockObject block, String fault, boolean isDamaged, boolean isMoved) {
      damaged += isDamaged ? 1 : 0;
      unreadable += isDamaged ? 0 : 1;
      told.accept(new Damage(bucket.address(block.key()), fault, isDamaged, isMoved));
    }
  }

  @Override
  public VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    ReadRateLimit limit = ReadRateLimit.of(plan.maxBytesPerSecond(), observer);
    try (BucketBlocks bucket = open()) {
      Reading read = new Reading(bucket, observer, found);
      read.run(
          plan.threads(),
          block -> {
            limit.take(block.size());
            verify(bucket, block, plan.quarantine(), read);
          });
      return new VerifyResult(
          read.good, read.seen, read.without, read.damaged, read.unreadable, !observer.isStopped());
    }
  }

  private void verify(BucketBlocks bucket, BlockObject block, boolean quarantine, Reading reading) {
    WholeBlocks.WholeBlock read;
    try {
      read = bucket.read(block);
    } catch (StoreException e) {
      reading.bad(block, String.valueOf(e.getMessage()), false, false);
      return;
    }
    String fault = read.fault();
    if (fault == null) {
      if (read.bytes() != null) {
        reading.good(block);
      }
    } else if (bucket.layout(block) == null) {
      reading.without();
    } else {
      reading.bad(block, fault, true, quarantine && moveAside(bucket, block));
    }
  }

  /** Stores what is there under another key, where no engine looks, and removes it. */
  private boolean moveAside(BucketBlocks bucket, BlockObject block) {
    if (block.size() > Integer.MAX_VALUE) {
      return false;
    }
    ByteBuffer bytes = ByteBuffer.allocateDirect((int) block.size());
    var _ = bucket.read(block, bytes);
    String aside = prefix + QUARANTINE + block.folder() + "-" + block.id();
    return bucket
            .send(ObjectRequest.put(aside, Map.of(), ObjectRequest.Source.of(bytes), bytes.limit()))
            .ok()
        && bucket.send(ObjectRequest.delete(block.key())).ok();
  }

  @Override
  public boolean hasOwnLimit() {
    return capacity > 0;
  }

  /** What the engines' collector would keep. */
  private long keep(long used) {
    return used > capacity ? BucketCollector.target(capacity) : used;
  }

  @Override
  public CollectResult collect(CollectPlan plan, Observer observer) {
    LongUnaryOperator keep = plan.target(hasOwnLimit() ? this::keep : null, "s3_capacity_gb");
    try (BucketBlocks bucket = open()) {
      List<BlockObject> blocks = bucket.listing(observer::isStopped).blocks();
      long used = bytes(blocks);
      long target = keep.applyAsLong(used);
      AtomicLong left = new AtomicLong(used - target);
      List<BlockObject> old =
          blocks.stream()
              .sorted(Comparator.comparing(block -> block.entry().modified()))
              .takeWhile(block -> left.getAndAdd(-block.size()) > 0)
              .toList();
      long bytes = 0;
      int removed = 0;
      while (removed < old.size() && !observer.isStopped()) {
        int to = Math.min(old.size(), removed + ObjectList.PAGE);
        List<BlockObject> page = old.subList(removed, to);
        if (!plan.dryRun()) {
          bucket.remove(page);
        }
        removed = to;
        bytes += bytes(page);
        observer.at(bytes, used - target);
      }
      return new CollectResult(used, target, removed, bytes, 0, !observer.isStopped());
    }
  }

  @Override
  public AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    ReadRateLimit limit = ReadRateLimit.of(plan.maxBytesPerSecond(), observer);
    try (BucketBlocks bucket = open()) {
      Reading read = new Reading(bucket, observer, failed);
      read.run(
          plan.threads(),
          block -> {
            if (ObjectFormat.isBare(bucket.send(ObjectRequest.head(block.key())))) {
              limit.take(block.size());
              adopt(bucket, block, plan.dryRun(), read);
            } else {
              read.verifiable();
            }
          });
      return new AdoptResult(
          read.good,
          read.goodBytes,
          read.verifiable,
          read.without,
          read.damaged,
          !observer.isStopped());
    }
  }

  /** Gives an object metadata; and where it has no footer, one of its layout before. */
  private void adopt(BucketBlocks bucket, BlockObject block, boolean dryRun, Reading reading) {
    try {
      ByteBuffer bytes = ByteBuffer.allocateDirect(Math.toIntExact(block.size()));
      var _ = bucket.read(block, bytes);
      if (StoredFooter.byteSize(bytes) == 0) {
        BlockLayout known = layout(bucket, block);
        if (known == null || known.blockSize() != bytes.limit()) {
          reading.without();
          return;
        }
        bytes = sealed(bytes, known, block);
      }
      WholeObject object = new WholeObject(bytes, block.high(), block.low());
      if (!object.key(prefix).equals(block.key())) {
        String crc = object.layoutCrc();
        reading.bad(
            block, "it is of the layout " + crc + ", and in the folder of another", true, false);
        return;
      }
      if (!dryRun) {
        var _ = bucket.send(object.put(block.key()));
      }
      reading.good(block);
    } catch (StoredFooter.Fault | StoreException | ArithmeticException e) {
      reading.bad(block, String.valueOf(e.getMessage()), true, false);
    }
  }

  /** The configured layout, or that of the other blocks in the folder of a block. */
  private @Nullable BlockLayout layout(BucketBlocks bucket, BlockObject block) {
    StoredLayout there = bucket.layoutThere(block);
    // The sizes of unlike tensors are not kept.
    return layout != null || there == null || there.tensorSize() == 0
        ? layout
        : BlockLayout.uniform(there.tensorSize(), there.shardSize(), there.blockSize());
  }

  private static ByteBuffer sealed(ByteBuffer bytes, BlockLayout layout, BlockObject block) {
    BlockFooter format = new BlockFooter(layout);
    int[] crcs = new int[layout.shardCount()];
    CRC32C crc = new CRC32C();
    int shard = Math.toIntExact(layout.shardSize());
    for (int i = 0; i < crcs.length; i++) {
      crc.reset();
      crc.update(bytes.slice(i * shard, shard));
      crcs[i] = (int) crc.getValue();
    }
    BlockFooter.Buffer footer = format.newBuffer();
    format.write(footer, block.high(), block.low(), crcs);
    ByteBuffer whole = ByteBuffer.allocateDirect(Math.toIntExact(format.fileSize()));
    whole.put(0, bytes, 0, bytes.limit());
    return whole.put((int) format.offset(), footer.segment().asByteBuffer(), 0, format.byteSize());
  }

  @Override
  public BitSet remove(BlockIds ids) {
    Set<String> wanted = IntStream.range(0, ids.size()).mapToObj(ids::hex).collect(toSet());
    try (BucketBlocks bucket = open()) {
      List<BlockObject> blocks =
          bucket.listing(() -> false).blocks().stream()
              .filter(block -> wanted.contains(block.id()))
              .toList();
      bucket.remove(blocks);
      Set<String> gone = blocks.stream().map(BlockObject::id).collect(toSet());
      BitSet removed = new BitSet();
      IntStream.range(0, ids.size()).forEach(i -> removed.set(i, gone.contains(ids.hex(i))));
      return removed;
    }
  }
}
