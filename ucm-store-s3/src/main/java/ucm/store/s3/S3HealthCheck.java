package ucm.store.s3;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.s3.client.ClientSettings;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.store.s3.client.ObjectRequest.Source;

/**
 * Looks at the bucket of a pipeline that ends in {@code S3}: whether it answers, and lets this machine store,
 * read, list and remove objects; what the server can; its clock; and whether anything removes old blocks.
 */
public final class S3HealthCheck implements HealthCheck {

  private static final String METADATA = "x-amz-meta-ucm";
  private static final ByteBuffer BODY = UTF_8.encode("a test object of ucm doctor");
  private static final Duration MOST_SKEW = Duration.ofSeconds(60);

  /** Does nothing. */
  public S3HealthCheck() {}

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    Optional<ClientSettings> settings =
        stages.contains("S3") ? S3Config.client(config, Optional.empty()) : Optional.empty();
    if (settings.isEmpty()) {
      return List.of();
    }
    ObjectClient client =
        new ObjectClient(settings.get(), Thread.ofPlatform().daemon().factory(), System::nanoTime);
    try {
      return new Run(client, settings.get(), config).findings();
    } finally {
      client.close(Duration.ofSeconds(2));
    }
  }

  private record Run(
      ObjectClient client,
      StoreConfig config,
      long nanos,
      String bucket,
      String key,
      List<Finding> found) {

    Run(ObjectClient client, ClientSettings settings, StoreConfig config) {
      this(
          client,
          config,
          4 * settings.firstByteNanos(),
          settings.bucket() + " at " + settings.endpoints().getFirst(),
          config.get(S3Config.PREFIX) + "/doctor-" + UUID.randomUUID(),
          new ArrayList<>());
    }

    List<Finding> findings() {
      ObjectReply reply = send(ObjectRequest.head(""));
      clock(reply);
      if (!reply.ok()) {
        found.add(Finding.failed("bucket " + bucket, reply.describe(), advice(reply)));
        return found;
      }
      found.add(Finding.ok("bucket " + bucket, "answers"));
      if (right("s3:PutObject", put(Map.of(METADATA, "doctor")))) {
        ObjectReply again = put(Map.of("If-None-Match", "*"));
        judge(
            again.isPresent(),
            "If-None-Match",
            "keeps a block from being stored twice",
            again.describe(),
            "nothing: blocks that two engines store at a time are stored twice");
        read();
        right("s3:DeleteObject", send(ObjectRequest.delete(key)));
      }
      String prefix = config.get(S3Config.PREFIX).replace("/", "%2F");
      right(
          "s3:ListBucket",
          send(ObjectRequest.ask("list-type=2&max-keys=1&prefix=" + prefix, bytes -> {})));
      oldBlocks();
      return found;
    }

    private void judge(boolean good, String what, String found, String otherwise, String advice) {
      this.found.add(good ? Finding.ok(what, found) : Finding.warning(what, otherwise, advice));
    }

    private ObjectReply send(ObjectRequest request) {
      return client.send(request, nanos).join();
    }

    private ObjectReply put(Map<String, String> headers) {
      return send(ObjectRequest.put(key, headers, Source.of(BODY), BODY.limit()));
    }

    private boolean right(String right, ObjectReply reply) {
      found.add(
          reply.ok()
              ? Finding.ok(right, "allowed")
              : Finding.failed(right, reply.describe(), "allow it on " + bucket));
      return reply.ok();
    }

    /** Loads take their checksums from the metadata of the same answer. */
    private void read() {
      ByteBuffer read = ByteBuffer.allocate(BODY.limit());
      ObjectReply reply = send(ObjectRequest.get(key, 2, BODY.limit() - 2L, read::put));
      if (right("s3:GetObject", reply)) {
        boolean same = read.flip().equals(BODY.slice(2, BODY.limit() - 2));
        boolean whole = same && "doctor".equals(reply.header(METADATA));
        found.add(
            whole
                ? Finding.ok("reads of a part", "bring the metadata")
                : Finding.failed(
                    "reads of a part",
                    same ? "without the metadata" : "of other bytes than were stored",
                    "use another server"));
      }
    }

    private void clock(ObjectReply reply) {
      if (reply.end() != ObjectReply.End.ANSWERED) {
        return;
      }
      Optional<Instant> theirs = reply.time("date");
      if (theirs.isEmpty()) {
        found.add(Finding.warning("clock", "the server does not tell its time", ""));
        return;
      }
      Duration skew = Duration.between(Instant.now(), theirs.get());
      judge(
          skew.abs().compareTo(MOST_SKEW) <= 0,
          "clock",
          "is the server's",
          "differs from the server's by " + skew.toSeconds() + " s",
          "set it: what is signed at another time is refused, by most servers after 15 min");
    }

    /** Who removes old blocks: a rule of the bucket, or the collector, which needs a lease. */
    private void oldBlocks() {
      ObjectReply rules = send(ObjectRequest.ask("lifecycle", bytes -> {}));
      double capacity = config.get(S3Config.CAPACITY_GB);
      judge(
          rules.ok() || capacity > 0,
          "old blocks",
          rules.ok()
              ? "the bucket has lifecycle rules"
              : "the oldest are removed beyond s3_capacity_gb " + capacity,
          rules.isMissing() ? "no lifecycle rule" : "lifecycle rules: " + rules.describe(),
          "set a rule that removes objects below s3_prefix, or s3_capacity_gb: nothing else does");
      if (capacity > 0) {
        ObjectReply other = put(Map.of("If-Match", "0123456789abcdef0123456789abcdef"));
        judge(
            other.isPresent() || other.isMissing(),
            "If-Match",
            "lets one engine at a time remove old blocks",
            other.describe(),
            "nothing: several engines may remove the same old blocks");
        send(ObjectRequest.delete(key));
      }
    }

    private static String advice(ObjectReply reply) {
      return switch (reply.end()) {
        case ANSWERED ->
            reply.isMissing()
                ? "create the bucket, or correct s3_bucket"
                : "check the credentials, the rights on the bucket, and s3_region";
        default ->
            "check s3_endpoints, that credentials are set (AWS_ACCESS_KEY_ID and"
                + " AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or the role of the machine), and"
                + " s3_ca_file";
      };
    }
  }
}
