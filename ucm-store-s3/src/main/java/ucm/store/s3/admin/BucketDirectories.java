package ucm.store.s3.admin;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongUnaryOperator;
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
import ucm.store.s3.admin.BucketBlocks.Reading;
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

  /** What a listing found: blocks in the order of their keys, and how much else there is. */
  private record Listing(List<BlockObject> blocks, long others, long quarantined) {}

  @Override
  public WholeBlocks wholeBlocks() {
    return open();
  }

  private BucketBlocks open() {
    return new BucketBlocks(new BucketAccess(settings, nanos), prefix);
  }

  private <R> R in(Function<BucketBlocks, R> work) {
    try (BucketBlocks bucket = open()) {
      return work.apply(bucket);
    }
  }

  private Listing listing(BucketBlocks bucket, Observer observer) {
    List<BlockObject> blocks = new ArrayList<>();
    AtomicLong others = new AtomicLong();
    AtomicLong quarantined = new AtomicLong();
    bucket.list(
        observer::isStopped,
        blocks::add,
        other -> {
          boolean aside = other.key().startsWith(prefix + QUARANTINE);
          var _ = (aside ? quarantined : others).incrementAndGet();
        });
    return new Listing(blocks, others.get(), quarantined.get());
  }

  /** Does some work on each of the blocks, by several threads, until it is stopped; the first fault ends it. */
  private static void each(
      List<BlockObject> blocks, int threads, Observer observer, Consumer<BlockObject> work) {
    try (WorkThreads pool =
        new WorkThreads(new OwnThreads("ucm-s3-admin-", (_, _) -> {}), threads)) {
      for (int i = 0; i < blocks.size() && !observer.isStopped(); i++) {
        BlockObject block = blocks.get(i);
        pool.submit(
            () -> {
              if (!observer.isStopped()) {
                work.accept(block);
              }
            });
      }
    }
  }

  @Override
  public List<DirectorySummary> summarize(Observer observer) {
    return in(bucket -> List.of(summary(bucket, observer)));
  }

  private DirectorySummary summary(BucketBlocks bucket, Observer observer) {
    Listing found = listing(bucket, observer);
    Map<StoredLayout, Long> layouts = new HashMap<>();
    Map<String, Long> folders = new TreeMap<>();
    List<String> notes = new ArrayList<>();
    long payload = 0;
    long used = 0;
    long unverified = 0;
    long faulty = 0;
    Instant oldest = null;
    Instant newest = null;
    long seen = 0;
    for (BlockObject object : found.blocks()) {
      StoredBlock block = bucket.stored(object);
      used += block.usedBytes();
      folders.merge(object.folder(), 1L, Long::sum);
      if (block.fault() != null) {
        faulty++;
      } else if (block.layout() == null) {
        unverified++;
      } else {
        layouts.merge(block.layout(), 1L, Long::sum);
        payload += block.byteSize();
      }
      Instant at = block.lastUse();
      oldest = oldest == null || at.isBefore(oldest) ? at : oldest;
      newest = newest == null || at.isAfter(newest) ? at : newest;
      observer.at(++seen, found.blocks().size());
    }
    if (found.blocks().isEmpty()) {
      notes.add("there are no blocks below this prefix");
    }
    List<LayoutCount> counts =
        layouts.entrySet().stream()
            .map(count -> new LayoutCount(count.getKey(), count.getValue()))
            .sorted(Comparator.comparingLong(LayoutCount::blocks).reversed())
            .toList();
    long fullest = folders.values().stream().mapToLong(Long::longValue).max().orElse(0);
    return new DirectorySummary(
        bucket.place(),
        notes,
        found.blocks().size() - faulty,
        payload,
        used,
        counts,
        unverified,
        faulty,
        found.others(),
        0,
        0,
        0,
        found.quarantined(),
        oldest,
        newest,
        folders.size(),
        fullest,
        0,
        0,
        "lifecycle rules of the bucket, if there are any");
  }

  @Override
  public void list(Observer observer, Consumer<StoredBlock> visitor) {
    Object _ =
        in(
            bucket -> {
              long seen = 0;
              List<BlockObject> blocks = listing(bucket, observer).blocks();
              for (BlockObject object : blocks) {
                visitor.accept(bucket.stored(object));
                observer.at(++seen, blocks.size());
              }
              return seen;
            });
  }

  /** Sums over blocks that threads have read. Guarded by itself. */
  private static final class Sums {
    private long good;
    private long bytes;
    private long unverified;
    private long damaged;
    private long unreadable;
    private long skipped;
  }

  @Override
  public VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    return in(bucket -> verify(bucket, plan, observer, found));
  }

  private VerifyResult verify(
      BucketBlocks bucket, VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    List<BlockObject> blocks = listing(bucket, observer).blocks();
    long total = blocks.stream().mapToLong(block -> block.entry().size()).sum();
    ReadRateLimit limit = ReadRateLimit.of(plan.maxBytesPerSecond(), observer);
    Sums sums = new Sums();
    each(
        blocks,
        plan.threads(),
        observer,
        block -> {
          long size = block.entry().size();
          String key = block.entry().key();
          limit.take(size);
          WholeBlocks.WholeBlock read = null;
          String unreadable = null;
          try {
            read = bucket.read(key, size, block.high(), block.low(), new Reading());
          } catch (StoreException e) {
            unreadable = String.valueOf(e.getMessage());
          }
          String fault = read == null ? unreadable : read.fault();
          boolean bare = fault != null && read != null && bucket.layout(block) == null;
          boolean moved =
              fault != null
                  && read != null
                  && !bare
                  && plan.quarantine()
                  && moveAside(bucket, block);
          synchronized (sums) {
            sums.bytes += size;
            if (fault == null) {
              sums.good += read != null && read.bytes() != null ? 1 : 0;
            } else if (bare) {
              sums.unverified++;
            } else {
              sums.damaged += read != null ? 1 : 0;
              sums.unreadable += read != null ? 0 : 1;
              found.accept(
                  new Damage("s3://" + settings.bucket() + "/" + key, fault, read != null, moved));
            }
            observer.at(sums.bytes, total);
          }
        });
    return new VerifyResult(
        sums.good,
        sums.bytes,
        sums.unverified,
        sums.damaged,
        sums.unreadable,
        !observer.isStopped());
  }

  /** Stores what is there under another key, where no engine looks, and removes it. */
  private boolean moveAside(BucketBlocks bucket, BlockObject block) {
    ByteBuffer bytes = ByteBuffer.allocateDirect((int) block.entry().size());
    var _ = bucket.bucket().get(block.entry().key(), bytes.capacity(), bytes);
    String aside = prefix + QUARANTINE + block.folder() + "-" + block.id();
    boolean kept =
        bucket
            .bucket()
            .send(ObjectRequest.put(aside, Map.of(), WholeObject.source(bytes), bytes.limit()))
            .ok();
    return kept && bucket.bucket().send(ObjectRequest.delete(block.entry().key())).ok();
  }

  @Override
  public boolean hasOwnLimit() {
    return capacity > 0;
  }

  @Override
  public CollectResult collect(CollectPlan plan, Observer observer) {
    LongUnaryOperator target = plan.target(hasOwnLimit() ? this::keep : null, "s3_capacity_gb");
    return in(bucket -> collect(bucket, plan.dryRun(), target, observer));
  }

  private CollectResult collect(
      BucketBlocks bucket, boolean isDry, LongUnaryOperator keep, Observer observer) {
    List<BlockObject> blocks = new ArrayList<>(listing(bucket, observer).blocks());
    blocks.sort(Comparator.comparing(block -> block.entry().modified()));
    long used = blocks.stream().mapToLong(block -> block.entry().size()).sum();
    long target = keep.applyAsLong(used);
    long excess = used - target;
    long bytes = 0;
    int removed = 0;
    while (bytes < excess && removed < blocks.size() && !observer.isStopped()) {
      List<String> keys = new ArrayList<>();
      while (bytes < excess && removed < blocks.size() && keys.size() < ObjectList.PAGE) {
        BlockObject block = blocks.get(removed++);
        keys.add(block.entry().key());
        bytes += block.entry().size();
      }
      if (!isDry) {
        bucket.bucket().remove(prefix, keys);
      }
      observer.at(bytes, excess);
    }
    return new CollectResult(used, target, removed, bytes, 0, !observer.isStopped());
  }

  /** What the engines' collector would keep. */
  private long keep(long used) {
    return used > capacity ? BucketCollector.target(capacity) : used;
  }

  @Override
  public AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    return in(bucket -> adopt(bucket, plan, observer, failed));
  }

  private AdoptResult adopt(
      BucketBlocks bucket, AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    List<BlockObject> blocks = listing(bucket, observer).blocks();
    long total = blocks.stream().mapToLong(block -> block.entry().size()).sum();
    ReadRateLimit limit = ReadRateLimit.of(plan.maxBytesPerSecond(), observer);
    Sums sums = new Sums();
    AtomicLong seen = new AtomicLong();
    AtomicLong verifiable = new AtomicLong();
    each(
        blocks,
        plan.threads(),
        observer,
        block -> {
          String key = block.entry().key();
          boolean has = !ObjectFormat.isBare(bucket.bucket().send(ObjectRequest.head(key)));
          if (has) {
            var _ = verifiable.incrementAndGet();
          } else {
            limit.take(block.entry().size());
            adoptOne(bucket, block, plan.dryRun(), sums, failed);
          }
          synchronized (seen) {
            observer.at(seen.addAndGet(block.entry().size()), total);
          }
        });
    return new AdoptResult(
        sums.good, sums.bytes, verifiable.get(), sums.skipped, sums.damaged, !observer.isStopped());
  }

  /** Gives an object metadata; and where it has no footer, one of the configured layout before. */
  private void adoptOne(
      BucketBlocks bucket, BlockObject block, boolean dryRun, Sums sums, Consumer<Damage> failed) {
    String key = block.entry().key();
    String fault;
    boolean skipped = false;
    try {
      ByteBuffer bytes = ByteBuffer.allocateDirect(Math.toIntExact(block.entry().size()));
      var _ = bucket.bucket().get(key, bytes.capacity(), bytes);
      skipped = StoredFooter.byteSize(bytes) == 0 && !isBlock(bytes);
      if (StoredFooter.byteSize(bytes) == 0 && !skipped) {
        bytes = sealed(bytes, block);
      }
      WholeObject object = new WholeObject(bytes, block.high(), block.low());
      fault = null;
      if (!object.key(prefix).equals(key)) {
        fault = "it is of the layout " + object.layoutCrc() + ", and in the folder of another";
      } else if (!dryRun) {
        var _ = bucket.bucket().send(object.put(key));
      }
    } catch (StoredFooter.Fault | StoreException | ArithmeticException e) {
      fault = String.valueOf(e.getMessage());
    }
    synchronized (sums) {
      if (skipped) {
        sums.skipped++;
      } else if (fault == null) {
        sums.good++;
        sums.bytes += block.entry().size();
      } else {
        sums.damaged++;
        failed.accept(new Damage("s3://" + settings.bucket() + "/" + key, fault, true, false));
      }
    }
  }

  private boolean isBlock(ByteBuffer bytes) {
    return layout != null && layout.blockSize() == bytes.limit();
  }

  private ByteBuffer sealed(ByteBuffer bytes, BlockObject block) {
    BlockLayout known = layout;
    if (known == null) {
      throw new StoreException("its layout is not known");
    }
    BlockFooter format = new BlockFooter(known);
    int[] crcs = new int[known.shardCount()];
    CRC32C crc = new CRC32C();
    int shard = Math.toIntExact(known.shardSize());
    for (int i = 0; i < crcs.length; i++) {
      crc.reset();
      crc.update(bytes.slice(i * shard, shard));
      crcs[i] = (int) crc.getValue();
    }
    BlockFooter.Buffer footer = format.newBuffer();
    format.write(footer, block.high(), block.low(), crcs);
    ByteBuffer whole = ByteBuffer.allocateDirect(Math.toIntExact(format.fileSize()));
    whole.put(0, bytes, 0, bytes.limit());
    MemorySegment.copy(
        footer.segment(), 0, MemorySegment.ofBuffer(whole), format.offset(), format.byteSize());
    return whole;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return in(
        bucket -> {
          Map<String, Integer> wanted = new HashMap<>();
          for (int i = 0; i < ids.size(); i++) {
            wanted.put(ids.hex(i), i);
          }
          BitSet removed = new BitSet();
          List<String> keys = new ArrayList<>();
          for (BlockObject block : listing(bucket, (_, _) -> {}).blocks()) {
            Integer i = wanted.get(block.id());
            if (i != null) {
              removed.set(i);
              keys.add(block.entry().key());
            }
          }
          for (int from = 0; from < keys.size(); from += ObjectList.PAGE) {
            int to = Math.min(keys.size(), from + ObjectList.PAGE);
            bucket.bucket().remove(prefix, keys.subList(from, to));
          }
          return removed;
        });
  }
}
