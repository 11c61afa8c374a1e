package ucm.api;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The name by which a pipeline string asks for a store, as in {@code Cache|Posix}.
 *
 * <p>It is an annotation so that a catalogue can list stores without creating one. A name starts with
 * a letter and goes on with letters, digits, {@code _} or {@code -}; upper and lower case differ.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface StoreName {

  /** The form of a valid name, as a regular expression. */
  String PATTERN = "[A-Za-z][A-Za-z0-9_-]{0,63}";

  /** The name. */
  String value();
}
