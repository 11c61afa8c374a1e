package ucm.server.protocol;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** How a field of a message crosses the socket where its type does not say it; see {@link RecordCodec}. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
@interface Wire {

  /** What the bytes are. */
  enum As {
    /** A {@code u8}. */
    U8,
    /** A {@code u16}. */
    U16,
    /** A {@code u32} that only names something, so that its sign does not matter. */
    HANDLE,
    /** A list that older clients do not send. */
    ADDED
  }

  As value();
}
