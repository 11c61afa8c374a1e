package ucm.server.session;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.PromptVariant;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.LookupMessage.FoundMessage;
import ucm.server.protocol.ProtocolException;

/** A request of the engine. Used by the thread of the scheduler's connection. */
final class RequestEntry {

  final int handle;
  final String id;

  /** What it was promised last, unless that has ended. */
  Holds.@Nullable Hold hold;

  /** Blocks before this one are in the store: they were loaded from there. */
  int loadedTo;

  /** Of a hybrid model: up to which of its blocks the store has what is kept of every block. */
  int storedTo;

  /** How many tokens it had when it was looked up last. */
  int lookedUpTokens;

  /** Of a hybrid model: what it was offered last. */
  List<FoundMessage.Part> offered = List.of();

  /** At which count of failed loads it was looked up; see {@link SchedulerSession}. */
  int errorEpoch;

  private int[] tokens = new int[0];
  private final List<BitSet> saved = new ArrayList<>();

  RequestEntry(int handle, String id) {
    this.handle = handle;
    this.id = id;
  }

  /** It is looked up, whatever was known of it. */
  void begin() {
    loadedTo = 0;
    storedTo = 0;
    lookedUpTokens = tokens.length;
    offered = List.of();
    saved.clear();
  }

  /** Of a hybrid model: which blocks of a group are in the store, or on their way there. */
  BitSet saved(int group) {
    while (saved.size() <= group) {
      saved.add(new BitSet());
    }
    return saved.get(group);
  }

  /** Adds tokens behind those that are kept. */
  void append(int first, int[] more) throws ProtocolException {
    if (first > tokens.length) {
      throw ProtocolException.bad(
          "request %s sends tokens from index %s on, and %s are known: send the others first"
              .formatted(id, first, tokens.length));
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
          "request %s has %s tokens, and says that %s are the prompt's"
              .formatted(id, tokens.length, message.promptTokens()));
    }
    return new PromptRequest(
        id, tokens, message.promptTokens(), message.maxOutputTokens(), variant);
  }
}
