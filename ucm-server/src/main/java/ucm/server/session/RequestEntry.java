package ucm.server.session;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.PromptVariant;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.ProtocolException;

/** A request of the engine. Used by the thread of the scheduler's connection. */
final class RequestEntry {

  final int handle;
  final String id;

  /** What it was promised last, unless that has ended. */
  Holds.@Nullable Hold hold;

  /** Blocks before this one are in the store: they were loaded from there. */
  int loadedTo;

  /** At which count of failed loads it was looked up; see {@link SchedulerSession}. */
  int errorEpoch;

  private int[] tokens = new int[0];

  RequestEntry(int handle, String id) {
    this.handle = handle;
    this.id = id;
  }

  /** Adds tokens behind those that are kept. */
  void append(int first, int[] more) throws ProtocolException {
    if (first > tokens.length) {
      throw ProtocolException.bad(
          "request "
              + id
              + " sends tokens from index "
              + first
              + " on, and "
              + tokens.length
              + " are known: send the others first");
    }
    if (more.length == 0 && first == tokens.length) {
      // The same array needs no new hashes.
      return;
    }
    int[] all = Arrays.copyOf(tokens, first + more.length);
    System.arraycopy(more, 0, all, first, more.length);
    tokens = all;
  }

  int[] tokensFrom(int first) {
    return Arrays.copyOfRange(tokens, Math.min(first, tokens.length), tokens.length);
  }

  int tokenCount() {
    return tokens.length;
  }

  /** The request as the connector takes it. */
  PromptRequest prompt(LookupMessage message, PromptVariant variant) throws ProtocolException {
    if (message.promptTokens() > tokens.length) {
      throw ProtocolException.bad(
          "request "
              + id
              + " has "
              + tokens.length
              + " tokens, and says that "
              + message.promptTokens()
              + " are the prompt's");
    }
    return new PromptRequest(
        id, tokens, message.promptTokens(), message.maxOutputTokens(), variant);
  }
}
