package ucm.store.file;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileStore;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.StoreConfig;
import ucm.platform.io.AioQueue;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.Folders;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.config.FileStoreKeys;
import ucm.store.file.config.StoreKind;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.volume.FileProbe;

/**
 * Checks the directories of a store of files, each by itself: whether one can write there, how much room
 * there is, whether O_DIRECT and the kernel's asynchronous I/O work on that very file system, and whether its
 * clock agrees with ours; and how memory is copied. A directory that is not there yet is checked where
 * it would be made.
 */
public final class FileHealthCheck {

  private static final double GIB = SpaceLimit.GB;
  private static final Duration TOLERATED_SKEW = Duration.ofSeconds(2);
  private static final int PAGE = 4096;
  // As long as folder and name of a block that is being written.
  private static final int LONGEST_NAME = 80;

  private final StoreKind kind;
  private final FileStoreKeys keys;
  private final StoreConfig config;
  private final FileOperations files;
  private final List<Finding> findings = new ArrayList<>();
  // By what the kernel calls them, so that one with several directories counts once.
  private final Map<String, Long> totalBytes = new LinkedHashMap<>();

  FileHealthCheck(StoreKind kind, StoreConfig config, FileOperations files) {
    this.kind = kind;
    this.keys = kind.keys();
    this.config = config;
    this.files = files;
  }

  /**
   * Checks, and leaves no file.
   *
   * @param config the values, under the names that such a store reads
   */
  public static List<Finding> run(StoreKind kind, StoreConfig config) {
    return new FileHealthCheck(kind, config, new LibcFileOperations()).run();
  }

  List<Finding> run() {
    for (String directory : config.get(CommonKeys.STORAGE_BACKENDS)) {
      check(directory);
    }
    capacity();
    return findings;
  }

  private void check(String directory) {
    String subject = "directory " + directory;
    try {
      Path folder = Folders.nearest(Path.of(directory));
      if (!Files.isDirectory(folder)) {
        failed(subject, folder + " is no directory", "correct storage_backends");
        return;
      }
      space(directory, folder);
      Duration skew = writeWithin(folder, Path.of(directory));
      boolean isThere = Files.exists(Path.of(directory));
      ok(subject, isThere ? "can be written" : "is not there yet, and can be made in " + folder);
      if (isThere) {
        findings.add(DirectoryAccess.look(Path.of(directory)));
      }
      findings.add(clock(directory, skew));
      attempt(
          "O_DIRECT in " + directory,
          () -> FileProbe.direct(kind, files, folder.toString()),
          config.get(CommonKeys.IO_DIRECT),
          "io_direct is true and asks for it",
          "io_direct is false");
      String engine = keys.ioEngine.name();
      String asked = config.get(keys.ioEngine);
      attempt(
          "aio in " + directory,
          () -> FileProbe.direct(files, AioQueue::new, folder.toString()),
          !asked.equals("psync"),
          engine
              + " asks for it: raise fs.aio-max-nr with sysctl if its requests are used up, or set"
              + " it to psync",
          engine + " is " + asked);
    } catch (IOException e) {
      failed(
          subject,
          "cannot be written: " + reason(e),
          "give the user that the engines run as the right to write there, mount it writable, or"
              + " name another in storage_backends");
    } catch (InvalidPathException e) {
      failed(subject, "is no path: " + e.getReason(), "correct storage_backends");
    }
  }

  private void ok(String subject, String found) {
    findings.add(Finding.ok(subject, found));
  }

  private void warning(String subject, String found, String advice) {
    findings.add(Finding.warning(subject, found, advice));
  }

  private void failed(String subject, String found, String advice) {
    findings.add(Finding.failed(subject, found, advice));
  }

  /**
   * Writes where the directory is, or in folders with names as long as those that are missing, which are
   * removed again: a name may be too long for the file system, and so may the whole path.
   */
  private static Duration writeWithin(Path there, Path directory) throws IOException {
    Path wanted = directory.toAbsolutePath();
    List<Path> made = new ArrayList<>();
    try {
      Path path = there;
      for (int i = there.getNameCount(); i < wanted.getNameCount(); i++) {
        String name = wanted.getName(i).toString();
        int length = name.getBytes(StandardCharsets.UTF_8).length;
        path = path.resolve(path.equals(there) ? probeName(length) : name);
        if (!Files.exists(path)) {
          made.add(Files.createDirectory(path));
        }
      }
      return write(path);
    } finally {
      for (Path folder : made.reversed()) {
        Files.deleteIfExists(folder);
      }
    }
  }

  /** A name that nothing else has, of that many bytes when it can be. */
  private static String probeName(int length) {
    String name = ".ucm-doctor-" + Long.toHexString(ThreadLocalRandom.current().nextLong());
    return name + "x".repeat(Math.max(0, length - name.length()));
  }

  private static String reason(IOException e) {
    return switch (e) {
      case AccessDeniedException denied ->
          "user " + DirectoryAccess.userId() + " may not, by " + denied.getFile();
      case FileSystemException named when named.getReason() != null -> named.getReason();
      default -> e.toString();
    };
  }

  /** Writes a page and reads it back; says how far the file's time is from ours. */
  private static Duration write(Path folder) throws IOException {
    byte[] page = new byte[PAGE];
    ThreadLocalRandom.current().nextBytes(page);
    Path file = folder.resolve(probeName(LONGEST_NAME));
    Instant before = Instant.now();
    try {
      Files.write(
          file,
          page,
          StandardOpenOption.CREATE_NEW,
          StandardOpenOption.WRITE,
          StandardOpenOption.SYNC);
      Instant after = Instant.now();
      if (!Arrays.equals(page, Files.readAllBytes(file))) {
        throw new IOException(file + " holds other bytes than were written to it");
      }
      Instant stamped = Files.getLastModifiedTime(file).toInstant();
      return stamped.isBefore(before)
          ? Duration.between(before, stamped)
          : stamped.isAfter(after) ? Duration.between(after, stamped) : Duration.ZERO;
    } finally {
      Files.deleteIfExists(file);
    }
  }

  /** What a difference between the clock of a file system and ours means. */
  static Finding clock(String directory, Duration skew) {
    String subject = "clock of " + directory;
    String found =
        String.format(Locale.ROOT, "differs from this machine's by %.1f s", skew.toMillis() / 1e3);
    return skew.abs().compareTo(TOLERATED_SKEW) <= 0
        ? Finding.ok(subject, "agrees with this machine's")
        : Finding.warning(
            subject,
            found,
            "let NTP (chrony) set both clocks: which blocks are coldest is told by times of files");
  }

  private void space(String directory, Path folder) throws IOException {
    String subject = "space in " + directory;
    FileStore store = Files.getFileStore(folder);
    long free = store.getUsableSpace();
    long total = store.getTotalSpace();
    double floor = config.get(keys.minFreeGb);
    if (total == 0) {
      ok(subject, "its file system (" + store.type() + ") does not tell");
      return;
    }
    totalBytes.put(store.name() + " " + store.type(), total);
    String found = "%s GiB free of %s (%s)".formatted(gib(free), gib(total), store.type());
    if (free < floor * GIB) {
      failed(
          subject,
          found,
          "%s is %s, so no block is written: make room there, or lower it"
              .formatted(keys.minFreeGb.name(), number(floor)));
      return;
    }
    switch (store.type()) {
      case "tmpfs", "ramfs" ->
          warning(
              subject,
              found,
              "this is memory, and its blocks are gone after a restart of the machine: name a"
                  + " directory on a disk in storage_backends, unless that is meant");
      case "overlay" ->
          warning(
              subject,
              found,
              "this is a layer of a container, and its blocks are gone with the container: mount a"
                  + " volume, unless that is meant");
      default -> ok(subject, found);
    }
  }

  private void capacity() {
    String subject = "capacity of " + kind.name();
    String key = keys.capacityGb.name();
    double wanted = config.get(keys.capacityGb);
    long there = totalBytes.values().stream().mapToLong(Long::longValue).sum();
    if (wanted == 0) {
      ok(
          subject,
          ("%s is 0: nothing is removed, and no block is written that would leave less than %s GiB"
                  + " (%s)")
              .formatted(key, number(config.get(keys.minFreeGb)), keys.minFreeGb.name()));
    } else if (there > 0 && wanted * GIB > there) {
      warning(
          subject,
          "%s is %s, and the file systems have %s GiB in all"
              .formatted(key, number(wanted), gib(there)),
          "lower it: they are full before blocks are removed for it");
    } else if (there > 0) {
      ok(subject, "%s is %s of %s GiB".formatted(key, number(wanted), gib(there)));
    }
  }

  private void attempt(
      String subject, Runnable probe, boolean isAsked, String advice, String otherwise) {
    try {
      probe.run();
      ok(subject, "works");
    } catch (StoreException e) {
      if (isAsked) {
        failed(subject, String.valueOf(e.getMessage()), advice);
      } else {
        ok(subject, "does not work, and " + otherwise);
      }
    }
  }

  private static String number(double value) {
    return BigDecimal.valueOf(value).stripTrailingZeros().toPlainString();
  }

  private static String gib(long bytes) {
    return String.format(Locale.ROOT, "%.1f", bytes / GIB);
  }
}
