package ucm.store.file.admin;

import java.io.File;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.DirectorySummary.LayoutCount;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.NativePath;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.SizeEvidence;
import ucm.store.file.lease.LeaseHolder;
import ucm.store.file.lease.WriterLocks;

/** Sums up what a directory holds. Takes one call at a time. */
final class DirectorySurvey implements DirectoryWalk.Visitor {

  private static final int NAMES_SHOWN = 3;
  private static final long NANOS = 1_000_000_000L;

  private final FileOperations files;
  private final FoundDirectory directory;
  private final WriterLocks writers;
  private final SizeEvidence sizes = new SizeEvidence();
  private final Map<StoredLayout, Long> layouts = new HashMap<>();
  private final Map<String, Long> filesIn = new HashMap<>();
  private final FileStat stat = new FileStat();
  private final List<String> unreadable = new ArrayList<>();
  private long checkedBlocks;
  private long checkedBytes;
  private long usedBytes;
  private long faulty;
  private long others;
  private long living;
  private long dead;
  private long unknown;
  private @Nullable Long oldestNanos;
  private @Nullable Long newestNanos;

  DirectorySurvey(FileOperations files, FoundDirectory directory) {
    this.files = files;
    this.directory = directory;
    this.writers = new WriterLocks(files, directory.root());
  }

  @Override
  public void folder(String folder) {
    filesIn.putIfAbsent(folder, 0L);
  }

  @Override
  public void block(BlockFile file, BlockInspection inspection) {
    filesIn.merge(file.folder(), 1L, Long::sum);
    FileStat found = inspection.stat();
    usedBytes += found.allocatedBytes();
    long used = found.lastUseNanos();
    Long oldest = oldestNanos;
    Long newest = newestNanos;
    oldestNanos = oldest == null ? used : Math.min(oldest, used);
    newestNanos = newest == null ? used : Math.max(newest, used);
    StoredLayout layout = inspection.layout();
    if (inspection.fault() != null) {
      faulty++;
    } else if (layout == null) {
      sizes.addBare(found.size());
    } else {
      sizes.addChecked(found.size(), layout);
      layouts.merge(layout, 1L, Long::sum);
      checkedBlocks++;
      checkedBytes += layout.blockSize();
    }
  }

  @Override
  public void other(String folder, String name) {
    if (!files.stat(NativePath.of(directory.path(folder, name)), stat)) {
      return;
    }
    filesIn.merge(folder, 1L, Long::sum);
    usedBytes += stat.isFile() ? stat.allocatedBytes() : 0;
    if (!FoundDirectory.isTemp(name)) {
      others++;
      return;
    }
    String token = FoundDirectory.writer(name);
    switch (token == null ? WriterLocks.Life.UNKNOWN : writers.of(token)) {
      case LIVING -> living++;
      case DEAD -> dead++;
      case UNKNOWN -> unknown++;
    }
  }

  @Override
  public void unreadable(String path, FileException fault) {
    unreadable.add(fault.getMessage());
  }

  /** What was found, once all has been shown. */
  DirectorySummary summary() {
    SizeEvidence.Sums bare = sizes.sums();
    long quarantined = 0;
    for (String name : own(BlockPaths.QUARANTINE)) {
      quarantined++;
      if (files.stat(NativePath.of(directory.path(BlockPaths.QUARANTINE, name)), stat)) {
        usedBytes += stat.allocatedBytes();
      }
    }
    List<LayoutCount> counts = new ArrayList<>();
    layouts.forEach((layout, blocks) -> counts.add(new LayoutCount(layout, blocks)));
    counts.sort(Comparator.comparingLong(LayoutCount::blocks).reversed());
    File root = new File(directory.root());
    return new DirectorySummary(
        directory.root(),
        notes(counts.size(), bare.whole()),
        checkedBlocks + bare.whole(),
        checkedBytes + bare.wholeBytes(),
        usedBytes,
        counts,
        bare.whole(),
        faulty + bare.faulty(),
        others,
        living,
        dead,
        unknown,
        quarantined,
        instant(oldestNanos),
        instant(newestNanos),
        directory.folders().size(),
        filesIn.values().stream().mapToLong(Long::longValue).max().orElse(0),
        root.getTotalSpace(),
        root.getUsableSpace(),
        LeaseHolder.describe(files, directory.root()));
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
          "it holds no block: "
              + (directory.isOurs()
                  ? "a store uses it, or did"
                  : "nothing was ever stored here, or it is the wrong directory"));
    } else if (!hasFolders && !directory.isOurs()) {
      notes.add(
          "it is no cache directory: it holds "
              + shown(names)
              + ", and no folder of blocks; name what storage_backends names");
    } else if (!names.isEmpty()) {
      notes.add("other things lie in it, and are left alone: " + shown(names));
    }
    if (directory.digits().size() > 1) {
      notes.add(
          "it is mixed: its folders have names of "
              + directory.digits()
              + " digits, and an engine looks only where its own data_dir_shard_bytes says");
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
          unreadable.size()
              + " folders or files cannot be read and are not counted: "
              + shown(unreadable)
              + "; run this as the user that the engines run as");
    }
    return notes;
  }

  private static String shown(List<String> names) {
    String first = String.join(", ", names.subList(0, Math.min(NAMES_SHOWN, names.size())));
    return names.size() <= NAMES_SHOWN ? first : first + ", ... (" + names.size() + " in all)";
  }

  /** The time of some nanoseconds since 1970. */
  private static @Nullable Instant instant(@Nullable Long nanos) {
    return nanos == null ? null : time(nanos);
  }

  static Instant time(long nanos) {
    return Instant.ofEpochSecond(Math.floorDiv(nanos, NANOS), Math.floorMod(nanos, NANOS));
  }
}
