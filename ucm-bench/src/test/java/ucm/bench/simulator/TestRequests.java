package ucm.bench.simulator;

import java.util.stream.IntStream;
import ucm.pipeline.hash.BlockHasher;

/** Requests for tests of the simulated engine, with blocks of four tokens. */
final class TestRequests {

  static final int BLOCK_TOKENS = 4;
  static final BlockHasher HASHER = BlockHasher.of("model", 1, "torch.bfloat16");

  private TestRequests() {}

  /** A prompt of tokens {@code first}, {@code first + 1} and so on. */
  static ServeRequest request(String id, int first, int tokens, int output) {
    return request(id, first, tokens, output, 0);
  }

  static ServeRequest request(String id, int first, int tokens, int output, long arrival) {
    int[] prompt = IntStream.range(first, first + tokens).toArray();
    return new ServeRequest(id, prompt, output, arrival);
  }

  /** A request whose blocks have names. */
  static ServeRequest hashed(String id, int first, int tokens) {
    ServeRequest request = request(id, first, tokens, 1);
    request.hash(HASHER, BLOCK_TOKENS);
    return request;
  }
}
