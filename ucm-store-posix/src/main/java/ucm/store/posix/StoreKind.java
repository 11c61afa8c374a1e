package ucm.store.posix;

import java.util.Locale;

/**
 * What tells the stores apart that keep blocks in files: the name that people see, and the prefix of
 * the keys, metrics and threads that are theirs alone.
 *
 * @param name for example {@code Posix}
 */
public record StoreKind(String name) {

  static final StoreKind POSIX = new StoreKind("Posix");

  /** The prefix, without an underscore. */
  String prefix() {
    return name.toLowerCase(Locale.ROOT);
  }

  /** The name of a key that only this kind of store has. */
  String key(String rest) {
    return prefix() + "_" + rest;
  }

  /** The name of a thread. */
  String thread(String role, int number) {
    return "ucm-" + prefix() + "-" + role + "-" + number;
  }

  /** The configuration keys of such a store. */
  PosixKeys keys() {
    return new PosixKeys(this);
  }
}
