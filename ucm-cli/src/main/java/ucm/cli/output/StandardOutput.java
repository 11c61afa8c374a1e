package ucm.cli.output;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.Serial;

/**
 * The process's standard output. A write that fails ends the command by a {@link Failure}; the JDK's own
 * stream would go on and say nothing.
 */
public final class StandardOutput extends FileOutputStream {

  public StandardOutput() {
    super(FileDescriptor.out);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) {
    try {
      super.write(bytes, offset, length);
    } catch (IOException e) {
      throw new Failure(e);
    }
  }

  /** The standard output takes no more. */
  public static final class Failure extends RuntimeException {

    @Serial private static final long serialVersionUID = 1L;

    private Failure(IOException cause) {
      super("cannot write to the standard output: " + cause.getMessage(), cause);
    }

    /** Whether the reader of a pipe has left, who has all that it wanted. */
    public boolean isClosedPipe() {
      return String.valueOf(getMessage()).endsWith("Broken pipe");
    }
  }
}
