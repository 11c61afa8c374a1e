package ucm.store.s3.block;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.store.s3.client.ObjectRequest.Method;

/**
 * Makes old objects new that are still loaded, for a collector that removes the oldest: one load in some has
 * the server copy the object onto itself, unless it has changed meanwhile. Thread-safe.
 *
 * @param oneIn about one load in so many of an old object refreshes it; 0 for none
 * @param old how long ago an object was stored that is old
 */
public record BlockRefresh(String bucket, int oneIn, Duration old) {

  private static final long NANOS = TimeUnit.SECONDS.toNanos(30);

  /** An object was loaded; what comes of a refresh is not waited for. */
  public void loaded(ObjectClient client, String key, ObjectReply reply) {
    boolean isOld = reply.age().compareTo(old) > 0 && !ObjectFormat.isBare(reply);
    if (oneIn == 0 || !isOld || ThreadLocalRandom.current().nextInt(oneIn) > 0) {
      return;
    }
    Map<String, String> headers = new HashMap<>();
    headers.put("x-amz-copy-source", "/" + bucket + "/" + key);
    headers.put("x-amz-copy-source-if-match", reply.header("etag"));
    headers.put("x-amz-metadata-directive", "REPLACE");
    headers.put(ObjectFormat.METADATA, reply.header(ObjectFormat.METADATA));
    var _ = client.send(new ObjectRequest(Method.PUT, key, "", headers, null, null, 0), NANOS);
  }
}
