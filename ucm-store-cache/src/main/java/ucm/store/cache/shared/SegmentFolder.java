package ucm.store.cache.shared;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Pattern;
import ucm.api.StoreException;

/**
 * The folder that segments lie in, and what they are called there: {@code ucm-<user>-<instance>-<hash>},
 * with the number of the user and the {@code unique_id} of the instance. The readable part is made of
 * harmless characters only, and the hash tells ids apart that look alike in them; so a name never leads
 * out of the folder.
 *
 * @param path normally /dev/shm
 */
public record SegmentFolder(Path path) {

  /** Where every Linux has memory that processes share. */
  public static final SegmentFolder DEV_SHM = new SegmentFolder(Path.of("/dev/shm"));

  private static final int MAX_READABLE = 48;
  private static final int HASH_DIGITS = 16;
  private static final Pattern NAME = Pattern.compile("ucm-\\d+-[A-Za-z0-9._-]*-[0-9a-f]{16}");

  /** The segment of an instance. */
  public Path segment(String uniqueId) {
    String readable = uniqueId.replaceAll("[^A-Za-z0-9._]", "-");
    readable = readable.substring(0, Math.min(readable.length(), MAX_READABLE));
    return path.resolve("ucm-" + user() + "-" + readable + "-" + hash(uniqueId));
  }

  /** All files here that are named like a segment. */
  public List<Path> segments() {
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(
            path, file -> NAME.matcher(file.getFileName().toString()).matches())) {
      files.forEach(found::add);
    } catch (IOException e) {
      throw new StoreException("cannot list " + path + ", where shared buffers lie", e);
    }
    return found;
  }

  /** Bytes that are free here. */
  public long free() {
    try {
      return Files.getFileStore(path).getUsableSpace();
    } catch (IOException e) {
      throw new StoreException(
          "Cache cannot ask how much room "
              + path
              + " has: a shared buffer (share_buffer_enable) needs a tmpfs there",
          e);
    }
  }

  /** The number of the user this process runs as. */
  int user() {
    try {
      return (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (IOException e) {
      throw new StoreException("cannot read /proc/self", e);
    }
  }

  /** What names this run of the kernel: 32 hexadecimal digits, two words. */
  long[] bootId() {
    try {
      String text = Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
      String digits = text.replace("-", "");
      int half = digits.length() / 2;
      return new long[] {
        Long.parseUnsignedLong(digits.substring(0, half), 16),
        Long.parseUnsignedLong(digits.substring(half), 16)
      };
    } catch (IOException | NumberFormatException e) {
      throw new StoreException("cannot read /proc/sys/kernel/random/boot_id", e);
    }
  }

  private static String hash(String uniqueId) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(uniqueId.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest).substring(0, HASH_DIGITS);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
