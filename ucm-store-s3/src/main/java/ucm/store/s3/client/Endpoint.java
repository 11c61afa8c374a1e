package ucm.store.s3.client;

import java.net.URI;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.crt.s3.S3Client;

/**
 * A server of the bucket, and whether it has answered lately. After some faults in a row it is not asked for a
 * while; then one request tries, and either opens it to all, or doubles the while. Thread-safe.
 */
final class Endpoint {

  private static final Logger LOG = LoggerFactory.getLogger(Endpoint.class);
  private static final int FAULTS = 5;
  private static final long FIRST_PAUSE_NANOS = 1_000_000_000L;
  private static final long LONGEST_PAUSE_NANOS = 30 * FIRST_PAUSE_NANOS;

  final URI uri;
  final String host;
  final S3Client client;
  private final LongSupplier clock;
  private final AtomicLong underWay = new AtomicLong();
  // Guarded by this.
  private int faults;
  private long pauseNanos;
  private long retryAt;
  private boolean trying;

  Endpoint(URI uri, String host, S3Client client, LongSupplier clock) {
    this.uri = uri;
    this.host = host;
    this.client = client;
    this.clock = clock;
  }

  /** Whether a request may be sent: always but while it is shut, when one at a time may try. */
  synchronized boolean admits() {
    if (pauseNanos == 0) {
      return true;
    }
    if (trying || clock.getAsLong() - retryAt < 0) {
      return false;
    }
    trying = true;
    return true;
  }

  /** Bytes of the requests that have not ended; one without a body counts as a little. */
  long underWay() {
    return underWay.get();
  }

  void started(ObjectRequest request) {
    underWay.addAndGet(weight(request));
  }

  void ended(ObjectRequest request, ObjectReply reply) {
    underWay.addAndGet(-weight(request));
    note(reply);
  }

  private static long weight(ObjectRequest request) {
    return Math.max(1024, request.bytes());
  }

  private synchronized void note(ObjectReply reply) {
    if (reply.end() == ObjectReply.End.ABORTED) {
      trying = false;
    } else if (!reply.isFault()) {
      if (pauseNanos > 0) {
        LOG.info("S3: {} answers again", uri);
      }
      faults = 0;
      pauseNanos = 0;
      trying = false;
    } else if (pauseNanos > 0) {
      // Late faults of requests from before do not lengthen the pause.
      if (trying) {
        trying = false;
        pause(Math.min(2 * pauseNanos, LONGEST_PAUSE_NANOS));
      }
    } else {
      faults++;
      if (faults >= FAULTS) {
        LOG.warn(
            "S3: {} is not asked for a while, as {} requests in a row failed; last: {}",
            uri,
            faults,
            reply.describe());
        pause(FIRST_PAUSE_NANOS);
      }
    }
  }

  private void pause(long nanos) {
    pauseNanos = nanos;
    retryAt = clock.getAsLong() + nanos;
  }

  /** Whether it is not asked at present. */
  synchronized boolean isShut() {
    return pauseNanos > 0;
  }
}
