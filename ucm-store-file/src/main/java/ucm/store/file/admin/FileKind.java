package ucm.store.file.admin;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What a file in a folder of blocks is, by its name.
 *
 * @param role what it is
 * @param token of its writer; null when it does not tell, as temporary files of the original do not
 */
record FileKind(Role role, @Nullable String token) {

  /** What files there are. */
  enum Role {
    BLOCK,
    TEMP,
    OTHER
  }

  private static final Pattern BLOCK = Pattern.compile("[0-9a-f]{32}");
  private static final Pattern TEMP =
      Pattern.compile("[0-9a-f]{32}(?:\\.(.+)-[0-9a-f]{10})?\\.tmp");
  private static final FileKind A_BLOCK = new FileKind(Role.BLOCK, null);
  private static final FileKind OTHER = new FileKind(Role.OTHER, null);

  static FileKind of(String folder, String name) {
    if (BLOCK.matcher(name).matches()) {
      // In a folder that is not its own it is not found.
      return FoundDirectory.belongs(folder, name) ? A_BLOCK : OTHER;
    }
    Matcher temp = TEMP.matcher(name);
    return temp.matches() ? new FileKind(Role.TEMP, temp.group(1)) : OTHER;
  }
}
