package ucm.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;
import ucm.pipeline.connector.statistics.PrivateFiles;

/** What a client of {@link AdminEndpoint} must know: a line in a file of this user alone. */
final class AdminToken {

  private static final int BYTES = 32;
  private static final int LEAST_CHARACTERS = 16;

  private final byte[] token;

  private AdminToken(byte[] token) {
    this.token = token;
  }

  /**
   * Reads the token, or makes one where there is no file.
   *
   * @throws StoreException when others may read the file, it is no file, or what is in it is too short
   */
  static AdminToken of(Path file) {
    try {
      if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
        make(file);
      }
      var _ = Daemon.requirePrivate(file);
      String text = Files.readString(file).strip();
      if (text.length() < LEAST_CHARACTERS) {
        throw new StoreException(
            "%s holds no token: it is a line of %s characters or more; remove it to have one made"
                .formatted(file, LEAST_CHARACTERS));
      }
      return new AdminToken(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new StoreException(
          "cannot use %s for the token of --admin-port: %s".formatted(file, FileFault.of(e)), e);
    }
  }

  private static void make(Path file) throws IOException {
    byte[] random = new byte[BYTES];
    new SecureRandom().nextBytes(random);
    byte[] line = (HexFormat.of().formatHex(random) + "\n").getBytes(StandardCharsets.US_ASCII);
    try (FileChannel made = PrivateFiles.open(file, StandardOpenOption.CREATE_NEW)) {
      made.write(ByteBuffer.wrap(line));
    }
  }

  /** Compares in a time that does not tell how much is right. */
  boolean is(String said) {
    return MessageDigest.isEqual(token, said.getBytes(StandardCharsets.UTF_8));
  }
}
