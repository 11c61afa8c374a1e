package ucm.pipeline.catalog;

import java.io.DataInputStream;
import java.io.IOException;
import java.lang.module.FindException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.zip.ZipFile;

/**
 * A jar of a plugin that can be read as a module.
 *
 * @param path the file
 * @param descriptor the module; an automatic one when the jar has no module-info
 */
record PluginJar(Path path, ModuleDescriptor descriptor) {

  /** A jar cannot be read as a module; the message says why. */
  static final class BadJarException extends Exception {

    private static final long serialVersionUID = 1L;

    BadJarException(String message) {
      super(message);
    }

    String problem() {
      return String.valueOf(getMessage());
    }
  }

  private static final int CLASS_FILE_MAGIC = 0xCAFEBABE;

  /** Class files of Java n have the major version n + 44. */
  private static final int MAJOR_OFFSET = 44;

  /** Reads the module descriptor of a jar. */
  static PluginJar read(Path path) throws BadJarException {
    requireJar(path);
    try {
      Set<ModuleReference> modules = ModuleFinder.of(path).findAll();
      if (modules.isEmpty()) {
        throw new BadJarException("holds no module");
      }
      return new PluginJar(path, modules.iterator().next().descriptor());
    } catch (FindException e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      throw new BadJarException("its module cannot be read: " + cause.getMessage());
    }
  }

  private static void requireJar(Path path) throws BadJarException {
    if (!Files.isRegularFile(path)) {
      throw new BadJarException("is no regular file");
    }
    try (JarFile jar =
        new JarFile(path.toFile(), false, ZipFile.OPEN_READ, JarFile.runtimeVersion())) {
      JarEntry entry = jar.getJarEntry("module-info.class");
      if (entry != null) {
        try (DataInputStream in = new DataInputStream(jar.getInputStream(entry))) {
          requireJavaVersion(in);
        }
      }
    } catch (IOException e) {
      throw new BadJarException("is no jar that can be read: " + e.getMessage());
    }
  }

  private static void requireJavaVersion(DataInputStream in) throws IOException, BadJarException {
    int magic = in.readInt();
    in.readUnsignedShort();
    int java = in.readUnsignedShort() - MAJOR_OFFSET;
    if (magic != CLASS_FILE_MAGIC) {
      throw new BadJarException("its module-info.class is no class file");
    }
    if (java > Runtime.version().feature()) {
      throw new BadJarException(
          "is compiled for Java " + java + ", this is Java " + Runtime.version().feature());
    }
  }

  /** Whether it has a module-info of its own. */
  boolean isExplicit() {
    return !descriptor.isAutomatic();
  }
}
