package ucm.lite.record;

/**
 * Finds out which requests belong to one conversation, from the blocks alone: a request continues
 * the session whose latest prompt ends where the known part of its own prompt ends. The last block
 * of a prompt may be partial and then has another id once it is full, so the end is the last block
 * or the one before. A prompt that branches off in the middle of another one, or where a session has
 * gone on already, shares its beginning (a system prompt, a document) and starts a session.
 *
 * <p>8 bytes a distinct block.
 */
public final class SessionTracker {
  private static final int NONE = -1;

  /** The session whose latest prompt ends with a block. */
  private final int[] endOf;

  /** The session in which a block was first seen. */
  private final int[] owner;

  private int sessions;

  public SessionTracker(int uniqueBlocks) {
    endOf = RecordedTrace.table(uniqueBlocks);
    owner = RecordedTrace.table(uniqueBlocks);
  }

  /** Returns the session of the next request, numbered from 0. */
  public int sessionOf(NumberedRequest request) {
    int[] blocks = request.blocks;
    int session = NONE;
    if (request.known > 0) {
      session = endOf[blocks[request.known - 1]];
      // The session goes on from here; another request that begins like this is another one.
      endOf[blocks[request.known - 1]] = NONE;
    }
    if (session == NONE) {
      session = sessions++;
    }
    for (int i = request.known; i < request.count; i++) {
      if (owner[blocks[i]] == NONE) {
        owner[blocks[i]] = session;
      }
    }
    int last = request.count - 1;
    if (last >= 0) {
      endOf[blocks[last]] = session;
    }
    if (last >= 1 && owner[blocks[last - 1]] == session) {
      endOf[blocks[last - 1]] = session;
    }
    return session;
  }

  public int sessions() {
    return sessions;
  }
}
