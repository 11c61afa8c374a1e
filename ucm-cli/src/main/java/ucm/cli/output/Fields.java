package ucm.cli.output;

import java.util.LinkedHashMap;
import org.jspecify.annotations.Nullable;

/** The fields of a JSON object, or of a row of CSV, in their order. Used by one thread. */
public final class Fields extends LinkedHashMap<String, Object> {

  private static final long serialVersionUID = 1;

  /** Adds a field; null is JSON's null. */
  public Fields with(String name, @Nullable Object value) {
    put(name, value);
    return this;
  }
}
