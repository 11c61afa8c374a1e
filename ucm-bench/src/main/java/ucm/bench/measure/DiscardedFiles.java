package ucm.bench.measure;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import ucm.cli.runtime.FileTreeVisitor;

/**
 * Files that a benchmark does not read again. They are cut off to nothing: so the next files are
 * written to memory that was just used, and the disk is not busy with these while something is timed.
 * They keep their names, because ext4 is slow to make files for minutes after others were removed.
 */
public final class DiscardedFiles {

  private DiscardedFiles() {}

  /**
   * Cuts off all files of {@code least} bytes or more below a folder of the benchmark's own. One
   * that goes away meanwhile is left out.
   */
  public static void cut(Path folder, long least) throws IOException {
    Files.walkFileTree(
        folder,
        new FileTreeVisitor() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            if (attributes.isRegularFile() && attributes.size() >= least) {
              cut(file);
            }
            return FileVisitResult.CONTINUE;
          }
        });
  }

  private static void cut(Path file) throws IOException {
    try (FileChannel open = FileChannel.open(file, StandardOpenOption.WRITE)) {
      open.truncate(0);
    } catch (NoSuchFileException e) {
      // Removed since it was listed.
    }
  }
}
