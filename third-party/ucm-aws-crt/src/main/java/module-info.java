/**
 * The AWS Common Runtime with a descriptor of its own; the published jar has none, and jlink takes no
 * automatic module.
 */
module software.amazon.awssdk.crt {
  // It frees the direct memory of its buffers by sun.misc.Unsafe.
  requires jdk.unsupported;

  exports software.amazon.awssdk.crt;
  exports software.amazon.awssdk.crt.auth.credentials;
  exports software.amazon.awssdk.crt.auth.signing;
  exports software.amazon.awssdk.crt.http;
  exports software.amazon.awssdk.crt.io;
  exports software.amazon.awssdk.crt.s3;
}
