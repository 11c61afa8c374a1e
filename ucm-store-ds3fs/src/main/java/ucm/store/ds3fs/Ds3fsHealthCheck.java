package ucm.store.ds3fs;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.Folders;
import ucm.store.file.FileHealthCheck;

/** Checks whether what {@code Ds3fs} needs is there: 3FS's library, its mounts, and shared memory. */
public final class Ds3fsHealthCheck implements HealthCheck {

  private static final String LIBRARY = "3FS library";
  private static final String MOUNT = "3FS mount";
  private static final String SHARED_MEMORY = "shared memory for 3FS";

  /** Checks this machine. */
  public Ds3fsHealthCheck() {}

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    if (!stages.contains(Ds3fsStore.KIND.name())) {
      return List.of(unasked());
    }
    List<Finding> findings = check(Ds3fsConfig.from(config));
    findings.addAll(FileHealthCheck.run(Ds3fsStore.KIND, Ds3fsConfig.ofFiles(config)));
    return findings;
  }

  /** The library is not loaded for a pipeline that does not use it. */
  private static Finding unasked() {
    Optional<String> found = UsrbioLibrary.installed();
    return Finding.ok(
        LIBRARY, found.orElse("none; only a pipeline with Ds3fs needs " + UsrbioLibrary.FILE_NAME));
  }

  private static List<Finding> check(Ds3fsConfig config) {
    List<Finding> findings = new ArrayList<>();
    long mounts = 1;
    try {
      findings.add(Finding.ok(LIBRARY, UsrbioLibrary.require(config.library())));
      mounts = Math.max(1, checkMounts(config, findings));
    } catch (StoreException e) {
      findings.add(Finding.failed(LIBRARY, message(e), "install it; see docs/3fs.md"));
      config.directories().forEach(directory -> findings.add(fileSystem(directory)));
    }
    SharedMemorySpace space = SharedMemorySpace.now();
    String problem = space.problem(config, (int) mounts);
    findings.add(
        problem == null
            ? Finding.ok(
                SHARED_MEMORY,
                ("%s bytes free in %s, %s are needed for each worker, and the memory of an upstream"
                        + " Cache")
                    .formatted(
                        space.freeBytes(), SharedMemorySpace.FOLDER, mounts * config.sharedBytes()))
            : Finding.failed(SHARED_MEMORY, problem, "see docs/3fs.md"));
    return findings;
  }

  /** Returns how many mounts there are. */
  private static long checkMounts(Ds3fsConfig config, List<Finding> findings) {
    List<String> points = new ArrayList<>();
    for (String directory : config.directories()) {
      try {
        String there = Folders.nearest(Path.of(directory)).toString();
        points.addAll(Mount.find(List.of(there), config.mountPoint()).keySet());
        findings.add(
            Finding.ok(MOUNT, directory + " is on the 3FS mounted at " + points.getLast()));
      } catch (StoreException e) {
        findings.add(Finding.failed(MOUNT, message(e), "see docs/3fs.md"));
      }
    }
    return points.stream().distinct().count();
  }

  /** Whether a directory is on 3FS, by the type of its file system: without the library nothing else tells. */
  private static Finding fileSystem(String directory) {
    Path there = Folders.nearest(Path.of(directory));
    try {
      FileStore found = Files.getFileStore(there);
      return found.type().contains("hf3fs")
          ? Finding.ok(MOUNT, directory + " is on 3FS (" + found.name() + ")")
          : Finding.failed(
              MOUNT,
              "%s is not on 3FS: %s is on a file system of type %s"
                  .formatted(directory, there, found.type()),
              "start the FUSE client of 3FS and name a folder on its mount; see docs/3fs.md");
    } catch (IOException e) {
      return Finding.failed(
          MOUNT, there + " cannot be checked: " + e.getMessage(), "see docs/3fs.md");
    }
  }

  private static String message(StoreException e) {
    return String.valueOf(e.getMessage());
  }
}
