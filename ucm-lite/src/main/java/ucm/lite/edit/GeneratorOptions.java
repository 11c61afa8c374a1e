package ucm.lite.edit;

/**
 * What a generated trace is like.
 *
 * @param requests how many, 1 or more
 * @param seed equal options and seed give an equal trace
 * @param requestsPerSecond mean rate, above 0
 * @param blockTokens tokens a block, 1 or more
 * @param chatShare part of the sessions that are conversations: a few turns, a minute apart
 * @param agentShare part that are agents: many steps, seconds apart, that grow by results of tools
 * @param documentShare part that ask questions about one of a few hundred documents, some of them
 *     much more popular than others
 * @param systemPrompts how many system prompts the sessions share, 1 or more
 */
public record GeneratorOptions(
    int requests,
    long seed,
    double requestsPerSecond,
    int blockTokens,
    double chatShare,
    double agentShare,
    double documentShare,
    int systemPrompts) {

  public GeneratorOptions {
    if (requests < 1 || blockTokens < 1 || systemPrompts < 1 || !(requestsPerSecond > 0)) {
      throw new IllegalArgumentException(
          "requests, rate, tokens a block and system prompts are above 0");
    }
    if (!(chatShare >= 0 && agentShare >= 0 && documentShare >= 0)
        || !(chatShare + agentShare + documentShare > 0)) {
      throw new IllegalArgumentException("shares are not negative, and not all of them are 0");
    }
  }
}
