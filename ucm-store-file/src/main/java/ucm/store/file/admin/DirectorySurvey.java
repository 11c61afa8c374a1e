package ucm.store.file.admin;

import java.io.File;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.DirectorySummary.LayoutCount;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.lease.CollectorLease;
import ucm.store.file.lease.FileLock;

/** Sums up what a directory holds. */
final class DirectorySurvey implements FoundDirectory.Visitor {

  private static final int NAMES_SHOWN = 3;
  private static final long NANOS = 1_000_000_000L;

  private final FileOperations files;
  private final FoundDirectory directory;
  private final Observer observer;
  private final AtomicLong seen;

  // Guarded by this, as is what follows.
  private final FoundFiles found = new FoundFiles();
  private final Map<String, Long> filesIn = new HashMap<>();
  private final FileStat stat = new FileStat();
  private final List<String> unreadable = new ArrayList<>();
  private final Map<String, FileLock.Owner> writers = new HashMap<>();
  private long usedBytes;
  private long faulty;
  private long others;
  private final Map<FileLock.Owner, Long> temps = new EnumMap<>(FileLock.Owner.class);
  private final LongSummaryStatistics uses = new LongSummaryStatistics();

  /**
   * Looks at nothing yet.
   *
   * @param seen counts the blocks of all directories, for the observer
   */
  DirectorySurvey(FoundDirectory directory, Observer observer, AtomicLong seen) {
    this.files = directory.files();
    this.directory = directory;
    this.observer = observer;
    this.seen = seen;
  }

  @Override
  public synchronized void block(BlockInspection inspection) {
    filesIn.merge(inspection.file().folder(), 1L, Long::sum);
    usedBytes += inspection.stat().allocatedBytes();
    uses.accept(inspection.stat().lastUseNanos());
    found.block(inspection);
    faulty += inspection.fault() == null ? 0 : 1;
    observer.at(seen.incrementAndGet(), 0);
  }

  @Override
  public synchronized void other(String folder, String name) {
    if (!files.stat(NativePath.of(directory.path(folder, name)), stat)) {
      return;
    }
    filesIn.merge(folder, 1L, Long::sum);
    usedBytes += stat.isFile() ? stat.allocatedBytes() : 0;
    if (!FoundDirectory.isTemp(name)) {
      others++;
      return;
    }
    temps.merge(directory.writer(name, writers), 1L, Long::sum);
  }

  @Override
  public synchronized void unreadable(String path, FileException fault) {
    unreadable.add(fault.getMessage());
  }

  /** Says what was found. */
  synchronized DirectorySummary summary() {
    FoundFiles.Bare bare = found.bare();
    long quarantined = 0;
    for (String name : own(BlockPaths.QUARANTINE)) {
      quarantined++;
      if (files.stat(NativePath.of(directory.path(BlockPaths.QUARANTINE, name)), stat)) {
        usedBytes += stat.allocatedBytes();
      }
    }
    List<LayoutCount> counts = new ArrayList<>();
    found.layouts().forEach((layout, blocks) -> counts.add(new LayoutCount(layout, blocks)));
    counts.sort(Comparator.comparingLong(LayoutCount::blocks).reversed());
    File root = new File(directory.root());
    return new DirectorySummary(
        directory.root(),
        notes(counts.size(), bare.whole()),
        counts.stream().mapToLong(LayoutCount::blocks).sum() + bare.whole(),
        found.checkedBytes() + bare.wholeBytes(),
        usedBytes,
        counts,
        bare.whole(),
        faulty + bare.faulty(),
        others,
        temps(FileLock.Owner.LIVING),
        temps(FileLock.Owner.DEAD),
        temps(FileLock.Owner.UNKNOWN),
        quarantined,
        uses.getCount() == 0 ? null : time(uses.getMin()),
        uses.getCount() == 0 ? null : time(uses.getMax()),
        directory.folders().size(),
        filesIn.values().stream().mapToLong(Long::longValue).max().orElse(0),
        root.getTotalSpace(),
        root.getUsableSpace(),
        CollectorLease.holder(files, directory.root()));
  }

  private long temps(FileLock.Owner owner) {
    return temps.getOrDefault(owner, 0L);
  }

  private List<String> own(String folder) {
    try {
      return files.list(NativePath.of(directory.root() + "/" + folder));
    } catch (FileException e) {
      unreadable.add(e.getMessage());
      return List.of();
    }
  }

  private List<String> notes(int layoutCount, long bare) {
    List<String> notes = new ArrayList<>();
    List<String> names = directory.others();
    boolean hasFolders = !directory.folders().isEmpty();
    if (!hasFolders && names.isEmpty()) {
      notes.add(
          String.format(
              "it holds no block: %s",
              directory.isOurs()
                  ? "a store uses it, or did"
                  : "nothing was ever stored here, or it is the wrong directory"));
    } else if (!hasFolders && !directory.isOurs()) {
      notes.add(
          ("it is no cache directory: it holds %s, and no folder of blocks; name what"
                  + " storage_backends names")
              .formatted(shown(names)));
    } else if (!names.isEmpty()) {
      notes.add("other things lie in it, and are left alone: " + shown(names));
    }
    if (directory.digits().size() > 1) {
      notes.add(
          ("it is mixed: its folders have names of %s digits, and an engine looks only where its"
                  + " own data_dir_shard_bytes says")
              .formatted(directory.digits()));
    }
    if (layoutCount > 1) {
      notes.add("it is mixed: blocks of " + layoutCount + " layouts, as of several models");
    }
    if (bare > 0) {
      notes.add(
          bare
              + " blocks carry no checksums, as those of the original UCM do: their bytes cannot be"
              + " verified, and engines miss them; see ucm store adopt");
    }
    if (!unreadable.isEmpty()) {
      notes.add(
          ("%s folders or files cannot be read and are not counted: %s; run this as the user that"
                  + " the engines run as")
              .formatted(unreadable.size(), shown(unreadable)));
    }
    return notes;
  }

  private static String shown(List<String> names) {
    String first = String.join(", ", names.subList(0, Math.min(NAMES_SHOWN, names.size())));
    return names.size() <= NAMES_SHOWN ? first : first + ", ... (" + names.size() + " in all)";
  }

  /** The time of some nanoseconds since 1970. */
  static Instant time(long nanos) {
    return Instant.ofEpochSecond(Math.floorDiv(nanos, NANOS), Math.floorMod(nanos, NANOS));
  }
}
