package ucm.lite.trace;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;

/** Says in words why a file could not be read or written; the exceptions often name a path only. */
public final class FileFault {

  private FileFault() {}

  /** The reason, to follow a colon, without the name of the file. */
  public static String of(IOException fault) {
    return switch (fault) {
      case NoSuchFileException _ -> "there is no such file or folder";
      case AccessDeniedException _ -> "this user may not do that";
      case NotDirectoryException _ -> "it is no folder";
      case FileAlreadyExistsException _ -> "it is there already";
      case CharacterCodingException _ -> "it is no UTF-8 text";
      case FileSystemException named when named.getReason() != null -> named.getReason();
      default -> fault.getMessage() == null ? fault.toString() : fault.getMessage();
    };
  }
}
