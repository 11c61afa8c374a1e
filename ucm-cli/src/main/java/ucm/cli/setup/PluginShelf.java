package ucm.cli.setup;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.lite.trace.FileFault;

/**
 * The plugins that an image brings, {@code NAME.zip} with the jars of each, and the folder where plugins are
 * loaded from: one is enabled when its jars lie unpacked in {@code NAME/} of that folder. Used by one thread.
 */
final class PluginShelf {

  private static final String ZIP = ".zip";
  private static final String JAR = ".jar";

  /** How a plugin stands. */
  enum State {
    /** Its jars are loaded by whatever starts next. */
    ENABLED,
    /** The image has it, and it is not loaded. */
    AVAILABLE,
    /** It is loaded, from other jars than this image brings. */
    OTHER_VERSION,
    /** Loaded, and nothing of this image. */
    OWN;

    String word() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  /** A plugin, and the zip, jar or folder that it is in. */
  record Plugin(String name, State state, Path location) {}

  private final Path zips;
  private final Path folder;

  /**
   * What is in two folders, which need not exist.
   *
   * @param zips what the image brings
   * @param folder where plugins are loaded from
   */
  PluginShelf(Path zips, Path folder) {
    this.zips = zips;
    this.folder = folder;
  }

  /** Those of the image and those that are loaded, by name. */
  List<Plugin> all() {
    TreeSet<String> names = new TreeSet<>();
    for (Path zip : children(zips)) {
      if (name(zip).endsWith(ZIP)) {
        names.add(name(zip).substring(0, name(zip).length() - ZIP.length()));
      }
    }
    List<Plugin> plugins = names.stream().map(this::shipped).collect(Collectors.toList());
    for (Path child : children(folder)) {
      boolean loaded = Files.isDirectory(child) || name(child).endsWith(JAR);
      if (loaded && !name(child).startsWith(".") && !names.contains(name(child))) {
        plugins.add(new Plugin(name(child), State.OWN, child));
      }
    }
    return plugins;
  }

  private static String name(Path file) {
    return String.valueOf(file.getFileName());
  }

  private static List<Path> children(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.sorted().toList();
    } catch (NoSuchFileException _) {
      return List.of();
    } catch (IOException e) {
      throw failed("look into " + folder, e);
    }
  }

  private Path zip(String name) {
    return zips.resolve(name + ZIP);
  }

  private Plugin shipped(String name) {
    Path unpacked = folder.resolve(name);
    if (!Files.isDirectory(unpacked)) {
      return new Plugin(name, State.AVAILABLE, zip(name));
    }
    Map<String, Long> found = new TreeMap<>();
    try (ZipFile jars = new ZipFile(zip(name).toFile())) {
      for (Path jar : children(unpacked)) {
        found.put(name(jar), Files.size(jar));
      }
      Map<String, Long> brought =
          jars.stream().collect(Collectors.toMap(ZipEntry::getName, ZipEntry::getSize));
      State state = found.equals(brought) ? State.ENABLED : State.OTHER_VERSION;
      return new Plugin(name, state, unpacked);
    } catch (IOException e) {
      throw failed("compare " + unpacked + " with " + zip(name), e);
    }
  }

  /** Unpacks the image's jars, also over those of another version. They are there together, or not. */
  Plugin enable(String name) {
    requireShipped(name);
    Path target = folder.resolve(name);
    try (Cleanup cleanup = new Cleanup()) {
      // A name with a dot is not loaded.
      Path made = cleanup.folder(folder, "." + name + "-");
      Path jars = Files.createDirectory(made.resolve("new"));
      unpack(zip(name), jars);
      if (Files.exists(target)) {
        Files.move(target, made.resolve("old"), StandardCopyOption.ATOMIC_MOVE);
      }
      Files.move(jars, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw failed("unpack " + zip(name) + " into " + target, e);
    }
    return shipped(name);
  }

  private static void unpack(Path zip, Path target) throws IOException {
    try (ZipFile file = new ZipFile(zip.toFile())) {
      for (ZipEntry entry : new ArrayList<>(file.stream().toList())) {
        String name = entry.getName();
        if (name.contains("/") || !name.endsWith(JAR)) {
          throw new IOException("it has " + name + ", and a plugin is jars without folders");
        }
        try (var bytes = file.getInputStream(entry)) {
          Files.copy(bytes, target.resolve(name));
        }
      }
    }
  }

  /** Removes the unpacked jars of a plugin of the image; of others nothing is removed. */
  Plugin disable(String name) {
    Path own = folder.resolve(name);
    UsageException.when(
        !Files.exists(zip(name)) && !name.isBlank() && Files.exists(own),
        "%s is not of this image, and there is no other copy of it to enable it from: move it away by yourself"
            .formatted(own));
    requireShipped(name);
    try {
      if (Files.exists(own)) {
        // At once, so that no half of it is ever loaded.
        Path gone = Files.createTempDirectory(folder, "." + name + "-");
        Files.move(own, gone.resolve("old"), StandardCopyOption.ATOMIC_MOVE);
        Cleanup.delete(gone);
      }
    } catch (IOException e) {
      throw failed("remove " + own, e);
    }
    return shipped(name);
  }

  private void requireShipped(String name) {
    List<String> names =
        all().stream().filter(plugin -> plugin.state() != State.OWN).map(Plugin::name).toList();
    UsageException.when(
        !names.contains(name),
        "this image brings no plugin \"%s\"; in %s there is %s"
            .formatted(name, zips, names.isEmpty() ? "none" : String.join(", ", names)));
  }

  private static UncheckedIOException failed(String what, IOException e) {
    return new UncheckedIOException("cannot " + what + ": " + FileFault.of(e), e);
  }
}
