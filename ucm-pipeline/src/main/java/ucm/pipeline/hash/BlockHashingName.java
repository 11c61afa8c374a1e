package ucm.pipeline.hash;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * What {@code block_hasher} calls a {@link BlockHashing}; lower case, stable, unique.
 *
 * <p>It is an annotation so that a catalogue can list names without running anything of a plugin.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface BlockHashingName {

  /** The name in the configuration. */
  String value();
}
