import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * Puts the Python package and the runtime image into one wheel, with the command {@code ucm}: {@code java
 * tools/build/Wheel.java PYTHON IMAGE VERSION ARCH FOLDER}; run by {@code ucm-dist} when it packages. The
 * same files give the same bytes. The format is that of <a
 * href="https://packaging.python.org/en/latest/specifications/binary-distribution-format/">binary
 * distributions</a>.
 */
final class Wheel {

  /** The wheel's tag promises that the image runs with this version of the C library, 2.28. */
  private static final int GLIBC_MINOR = 28;

  private static final Pattern GLIBC = Pattern.compile("GLIBC_2\\.(\\d+)");
  private static final byte[] ELF = {0x7f, 'E', 'L', 'F'};
  private static final LocalDateTime WRITTEN = LocalDateTime.of(2000, 1, 1, 0, 0);

  // Parts of a zip file: the end of its central directory, and a header there; as APPNOTE.TXT of
  // PKWARE has it.
  private static final int END_BYTES = 22;
  private static final int END_DIRECTORY_AT = 16;
  private static final int HEADER_BYTES = 46;
  private static final int MADE_ON_AT = 5;
  private static final int[] LENGTHS_AT = {28, 30, 32};
  private static final int ATTRIBUTES_AT = 38;
  private static final byte UNIX = 3;
  private static final int REGULAR_FILE = 0100000;

  private final ByteArrayOutputStream zipped = new ByteArrayOutputStream();
  private final ZipOutputStream zip = new ZipOutputStream(zipped);
  private final List<Integer> modes = new ArrayList<>();
  private final StringBuilder record = new StringBuilder();

  private Wheel() {}

  public static void main(String[] arguments) throws Exception {
    Path python = Path.of(arguments[0]);
    Path image = Path.of(arguments[1]);
    String version = arguments[2].replace("-SNAPSHOT", ".dev0");
    String tag = "py3-none-manylinux_2_%d_%s".formatted(GLIBC_MINOR, arguments[3]);
    Path folder = Path.of(arguments[4]);

    Map<String, Path> files = new TreeMap<>();
    add(files, "ucm/", python.resolve("ucm"));
    add(files, "ucm/_image/", image);
    for (Path file : files.values()) {
      requireOldLibrary(file);
    }
    try (var old = Files.newDirectoryStream(folder, "*.whl")) {
      for (Path file : old) {
        Files.delete(file);
      }
    }
    byte[] wheel = new Wheel().write(files, python, version, tag);
    Files.write(folder.resolve("ucm_jvm-%s-%s.whl".formatted(version, tag)), wheel);
  }

  private static void add(Map<String, Path> files, String prefix, Path from) throws IOException {
    try (Stream<Path> found = Files.walk(from)) {
      found
          .filter(file -> Files.isRegularFile(file) && !file.toString().contains("__pycache__"))
          .forEach(file -> files.put(prefix + from.relativize(file), file));
    }
  }

  /** Refuses a program or library that needs symbols of a newer C library. */
  private static void requireOldLibrary(Path file) throws IOException {
    try (InputStream in = Files.newInputStream(file)) {
      if (!Arrays.equals(in.readNBytes(ELF.length), ELF)) {
        return;
      }
    }
    Matcher needed = GLIBC.matcher(Files.readString(file, StandardCharsets.ISO_8859_1));
    while (needed.find()) {
      if (Integer.parseInt(needed.group(1)) > GLIBC_MINOR) {
        throw new IllegalStateException(
            ("%s needs %s, and the wheel's tag promises GLIBC_2.%d: link it with an older C"
                 + " library, or raise GLIBC_MINOR")
                .formatted(file, needed.group(), GLIBC_MINOR));
      }
    }
  }

  private byte[] write(Map<String, Path> files, Path python, String version, String tag)
      throws Exception {
    for (Map.Entry<String, Path> file : files.entrySet()) {
      boolean isProgram = Files.isExecutable(file.getValue());
      put(file.getKey(), Files.readAllBytes(file.getValue()), isProgram);
    }
    String info = "ucm_jvm-%s.dist-info/".formatted(version);
    String project = Files.readString(python.resolve("pyproject.toml"));
    String metadata =
        """
        Metadata-Version: 2.1
        Name: %s
        Version: %s
        Summary: %s
        License: Apache-2.0
        Requires-Python: %s
        Description-Content-Type: text/markdown

        %s\
        """
            .formatted(
                value(project, "name"),
                version,
                value(project, "description"),
                value(project, "requires-python"),
                Files.readString(python.resolve("README.md")));
    String entries =
        """
        [console_scripts]
        ucm = ucm.image:main

        [vllm.general_plugins]
        %s
        """
            .formatted(section(project, "[project.entry-points.\"vllm.general_plugins\"]"));
    String form =
        """
        Wheel-Version: 1.0
        Generator: ucm
        Root-Is-Purelib: false
        Tag: %s
        """
            .formatted(tag);
    put(info + "METADATA", metadata.getBytes(StandardCharsets.UTF_8), false);
    put(info + "WHEEL", form.getBytes(StandardCharsets.UTF_8), false);
    put(info + "entry_points.txt", entries.getBytes(StandardCharsets.UTF_8), false);
    record.append(info).append("RECORD,,\n");
    put(info + "RECORD", record.toString().getBytes(StandardCharsets.UTF_8), false);
    zip.close();
    return withModes();
  }

  private void put(String name, byte[] bytes, boolean isProgram) throws Exception {
    ZipEntry entry = new ZipEntry(name);
    entry.setTimeLocal(WRITTEN);
    zip.putNextEntry(entry);
    zip.write(bytes);
    zip.closeEntry();
    modes.add(isProgram ? REGULAR_FILE | 0755 : REGULAR_FILE | 0644);
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
    String hash = Base64.getUrlEncoder().withoutPadding().encodeToString(digest);
    record.append("%s,sha256=%s,%d\n".formatted(name, hash, bytes.length));
  }

  /**
   * The zip file with the mode of each file in its central directory, where {@link ZipOutputStream} has no
   * place for it: installers make only those programs that are regular files there.
   */
  private byte[] withModes() {
    ByteBuffer file = ByteBuffer.wrap(zipped.toByteArray()).order(ByteOrder.LITTLE_ENDIAN);
    int at = file.getInt(file.limit() - END_BYTES + END_DIRECTORY_AT);
    for (int mode : modes) {
      file.put(at + MADE_ON_AT, UNIX);
      file.putInt(at + ATTRIBUTES_AT, mode << 16);
      int header = at;
      at += HEADER_BYTES;
      for (int lengthAt : LENGTHS_AT) {
        at += Short.toUnsignedInt(file.getShort(header + lengthAt));
      }
    }
    return file.array();
  }

  /** The value of a key of {@code pyproject.toml} that is one string. */
  private static String value(String project, String key) {
    return project
        .lines()
        .filter(line -> line.startsWith(key + " = \""))
        .map(line -> line.substring(line.indexOf('"') + 1, line.lastIndexOf('"')))
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("pyproject.toml has no " + key));
  }

  /** The lines of a section of {@code pyproject.toml}, without quotes. */
  private static String section(String project, String title) {
    List<String> lines = project.lines().toList();
    return lines.stream()
        .skip(lines.indexOf(title) + 1L)
        .takeWhile(line -> !line.isBlank())
        .map(line -> line.replace("\"", ""))
        .collect(Collectors.joining("\n"));
  }
}
