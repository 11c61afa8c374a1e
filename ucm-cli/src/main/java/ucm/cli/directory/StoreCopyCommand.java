package ucm.cli.directory;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.api.admin.ReadRateLimit;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.WholeBlocks;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.lite.trace.FileFault;
import ucm.platform.thread.OwnThreads;
import ucm.platform.thread.WorkThreads;

/** {@code ucm store copy}: blocks of a folder or a bucket into another. */
@Command(
    name = "copy",
    description = {
      "Copies blocks from a directory or a bucket into another, also while engines use them.",
      "",
      "Each block is compared with its checksums before it is stored; one that is damaged or has"
          + " none is not copied, and exit code 1 says so. What the other place has already is left"
          + " as it is, so that the same command goes on where one was stopped. A block shows there"
          + " whole or not at all."
    })
final class StoreCopyCommand extends JsonCommand {

  private static final long MB = 1_000_000;
  private static final long LAST_WRITES_SECONDS = 10;

  @Parameters(
      paramLabel = "FROM",
      index = "0",
      description = "a directory of blocks, or an address as in s3://bucket/prefix")
  private String from = "";

  @Parameters(
      paramLabel = "TO",
      index = "1",
      description = "the same; a directory is made when there is none")
  private String to = "";

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description = "the keys of the addresses, but for what these say")
  private @Nullable Path config;

  @Option(
      names = "--store",
      paramLabel = "NAME",
      description = "the store that directories are of (default: ${DEFAULT-VALUE})")
  private String store = "Posix";

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "blocks that are copied at once (default: ${DEFAULT-VALUE})")
  private int threads = 8;

  @Option(
      names = "--max-mbps",
      paramLabel = "MB",
      description = "most megabytes (10^6 bytes) copied in a second; 0, the default, is no limit")
  private int maxMegabytesPerSecond = 0;

  @Mixin private AddressKeys keys = new AddressKeys();

  /** A block that was not copied. */
  private record Left(String id, String reason) {}

  private static final Columns<Left> LEFT =
      new Columns<Left>().data("id", Left::id).data("reason", Left::reason);

  private final List<Left> left = Collections.synchronizedList(new ArrayList<>());
  private final ReentrantReadWriteLock writes = new ReentrantReadWriteLock();
  private final LongAdder copied = new LongAdder();
  private final LongAdder copiedBytes = new LongAdder();
  private final LongAdder present = new LongAdder();
  private final LongAdder gone = new LongAdder();
  // Guarded by this, as progress is shown by one thread at a time.
  private long seen;

  @Override
  public Integer call() {
    UsageException.within("--threads", threads, 1, 1024);
    UsageException.atLeast("--max-mbps", maxMegabytesPerSecond, 0);
    UsageException.when(from.equals(to), "FROM and TO are the same: " + from);
    UsageException.when(
        !AddressKeys.isAddress(from) && !Files.isDirectory(Path.of(from)),
        "there is no directory " + from + " to copy from");
    StoreDirectories source = place(from);
    StoreDirectories target = place(to);
    boolean whole = DirectoryCommand.onBlocks(work -> copy(source, target, work));
    if (!Cleanup.interrupted()) {
      print(this::data, this::show);
    }
    return whole && left.isEmpty() ? 0 : 1;
  }

  private StoreDirectories place(String place) {
    if (AddressKeys.isAddress(place)) {
      return keys.open(place, config, Map.of());
    }
    Path folder = Path.of(place);
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw new UsageException("cannot make the directory " + folder + ": " + FileFault.of(e));
    }
    return AddressKeys.opened(store, AddressKeys.directories(Stream.of(folder)), keys.catalog());
  }

  private boolean copy(StoreDirectories source, StoreDirectories target, Observer work) {
    List<StoredBlock> blocks = new ArrayList<>();
    source.list(stopOf(work), blocks::add);
    ReadRateLimit limit = ReadRateLimit.of(maxMegabytesPerSecond * MB, work);
    try (Cleanup cleanup = new Cleanup();
        WholeBlocks reader = source.wholeBlocks();
        WholeBlocks writer = target.wholeBlocks()) {
      // After Ctrl-C what is being written is written to its end, and nothing more is begun.
      AutoCloseable _ =
          cleanup.add(() -> writes.writeLock().tryLock(LAST_WRITES_SECONDS, TimeUnit.SECONDS));
      WorkThreads.forEach(
          new OwnThreads("ucm-copy-", (_, _) -> {}),
          threads,
          blocks,
          work::isStopped,
          block -> {
            copy(block, reader, writer, limit, work);
            tell(work, blocks.size());
          });
    }
    return !work.isStopped();
  }

  /** Counting what there is to do is no progress. */
  private static Observer stopOf(Observer work) {
    return new Observer() {
      @Override
      public void at(long done, long total) {}

      @Override
      public boolean isStopped() {
        return work.isStopped();
      }
    };
  }

  private void copy(
      StoredBlock block,
      WholeBlocks reader,
      WholeBlocks writer,
      ReadRateLimit limit,
      Observer work) {
    if (block.layout() != null && writer.holds(block)) {
      present.increment();
      return;
    }
    String fault = block.fault();
    if (fault == null && block.layout() == null) {
      fault = "it has no checksums: `ucm store adopt` gives it some";
    }
    ByteBuffer bytes = null;
    if (fault == null) {
      limit.take(block.usedBytes());
      WholeBlocks.WholeBlock read = reader.read(block);
      bytes = read.bytes();
      fault = read.fault();
    }
    if (fault != null) {
      left.add(new Left(block.id(), fault));
    } else if (bytes == null) {
      gone.increment();
    } else {
      writes.readLock().lock();
      try {
        if (!work.isStopped()) {
          writer.write(block, bytes);
          copied.increment();
          copiedBytes.add(bytes.limit());
        }
      } finally {
        writes.readLock().unlock();
      }
    }
  }

  private synchronized void tell(Observer work, long total) {
    seen++;
    work.at(seen, total);
  }

  private Fields data() {
    return new Fields()
        .with("copied_blocks", copied.sum())
        .with("copied_bytes", copiedBytes.sum())
        .with("present_blocks", present.sum())
        .with("vanished_blocks", gone.sum())
        .with("not_copied", LEFT.data(left));
  }

  private void show() {
    left.forEach(each -> say("not copied: " + each.id() + ": " + each.reason()));
    say(
        "copied %s blocks (%s); %s were there already, %s vanished meanwhile, %s were not copied"
            .formatted(copied, Figures.bytes(copiedBytes.sum()), present, gone, left.size()));
  }
}
