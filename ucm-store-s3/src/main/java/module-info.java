/**
 * The store {@code S3}: host memory to and from objects of a bucket. It exports nothing.
 *
 * @provides ucm.api.admin.HealthCheck for the bucket
 */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // It ends in a digit, as what it is named after does.
module ucm.store.s3 {
  requires static org.jspecify;
  requires org.slf4j;
  requires software.amazon.awssdk.crt;
  requires ucm.api;
  requires ucm.platform;
  requires ucm.store.file;

  provides ucm.api.admin.HealthCheck with
      ucm.store.s3.S3HealthCheck;
  provides ucm.api.Store with
      ucm.store.s3.S3Store;
}
