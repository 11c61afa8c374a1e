package ucm.cli.runtime;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;

/** Goes through files of which others may remove some meanwhile; those are left out. */
public class FileTreeVisitor extends SimpleFileVisitor<Path> {

  @Override
  public FileVisitResult visitFileFailed(Path file, IOException failure) throws IOException {
    if (failure instanceof NoSuchFileException) {
      return FileVisitResult.CONTINUE;
    }
    throw failure;
  }
}
