package ucm.store.s3.client;

import java.net.URI;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where a bucket is, and how it is asked.
 *
 * @param endpoints with scheme, host and port
 * @param pathStyle whether the bucket is named in the path, or before the host
 * @param caFile the authorities to trust instead of the machine's, or null
 * @param connections at most, to all endpoints together
 * @param firstByteNanos how long an answer may take to begin
 * @param partBytes what one request reads at the most
 */
public record ClientSettings(
    List<URI> endpoints,
    String bucket,
    String region,
    boolean pathStyle,
    @Nullable String caFile,
    int connections,
    long firstByteNanos,
    long partBytes) {}
