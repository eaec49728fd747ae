//! A conversation as it was is the conversation that a read model of the log up to there has.

use std::collections::BTreeMap;

use async_trait::async_trait;
use pa_domain::{AgentId, Event, Meta, Timestamp};
use sqlx::PgPool;

use super::{Model, project};
use crate::conversation::past::{Each, Events, Past, Reach, Wanted, page_within};
use crate::conversation::{self, Page};
use crate::testing::story::{Story, Turn, agent, everything, file, main_of};
use crate::{Error, audit};

/// A story's events, by agent and ordinal.
struct Told(BTreeMap<(AgentId, i64), (Meta, Event)>);

impl Told {
  fn of(story: &Story) -> Self {
    let facts = story.decisions.iter().flat_map(|decision| &decision.facts);
    Self(facts.map(|(meta, event)| ((meta.agent, meta.ordinal), (meta.clone(), event.clone()))).collect())
  }

  fn at(&self, agent: AgentId) -> At<'_> {
    At { told: self, agent }
  }
}

struct At<'a> {
  told: &'a Told,
  agent: AgentId,
}

#[async_trait]
impl Events for At<'_> {
  type Error = Error;

  async fn read(&self, places: &[audit::Place], each: &mut Each<'_>) -> Result<(), Error> {
    for place in places {
      let (meta, event) = &self.told.0[&(self.agent, place.ordinal)];
      each(meta, event);
    }
    Ok(())
  }
}

/// Reads a page of the past with windows of every size; they must agree.
async fn past(pool: &PgPool, told: &Told, agent: AgentId, wanted: Wanted) -> Page {
  let mut pages = Vec::new();
  for first in [1, 5, 1_000] {
    match page_within(pool, &told.at(agent), agent, wanted, Reach { first, most: i64::MAX }).await.unwrap() {
      Past::Page(page) => pages.push(page),
      Past::TooFar => panic!("nothing is too far here"),
    }
  }
  assert!(pages.windows(2).all(|two| two[0] == two[1]), "it does not matter how it is read: {wanted:?}");
  pages.remove(0)
}

/// Turns that end in every way, in an order that the number decides.
fn random(mut number: u64, agents: u128, turns: usize) -> Story {
  let mut story = Story::default();
  (1..=agents).for_each(|id| story.create(agent(id)));
  let mut waiting: Vec<(Turn, i32)> = Vec::new();
  let mut draw = |below: usize| {
    number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(number >> 33).unwrap() % below
  };
  for _ in 0..turns {
    let id = agent(1 + draw(usize::try_from(agents).unwrap()) as u128);
    let turn = story.admit(id, "what do you think?", &[file(u32::try_from(draw(9)).unwrap() + 1)], true);
    waiting.push((turn, 0));
    let (turn, executions) = waiting.swap_remove(draw(waiting.len()));
    let execution = executions + 1;
    story.start(turn, execution);
    match draw(5) {
      // A reply whose second execution may come much later.
      0 if execution < 3 => {
        story.lose(turn, execution);
        waiting.push((turn, execution));
      }
      1 => story.stop(turn, Some(execution), "half of it"),
      2 => story.stop(turn, Some(execution), ""),
      3 => {
        story.fail(turn, execution);
      }
      _ => story.finish(turn, execution, "that", None),
    }
  }
  story
}

/// At every position, pages of the past are those of a read model of the log up to there.
async fn agrees(story: &Story, agents: &[AgentId]) {
  let told = Told::of(story);
  let (whole, cut) = (Model::of(&story.decisions).await, Model::new().await);
  for end in 1..=story.decisions.len() {
    project(&cut.store, &story.decisions[..end], 1).await;
    let (last, _) = story.decisions[end - 1].facts.last().unwrap();
    let (id, main) = (last.agent, main_of(last.agent));
    if !agents.contains(&id) {
      continue;
    }
    for (meta, _) in &story.decisions[end - 1].facts {
      assert_eq!(audit::whole_decision(&whole.pool, id, meta.ordinal).await.unwrap(), Some(last.ordinal), "the decision is whole");
    }
    assert_eq!(audit::last_until(&whole.pool, id, last.at).await.unwrap(), last.ordinal, "its instant means the same");
    let conversation = conversation::past::one(&whole.pool, &told.at(id), id, None, last.ordinal).await.unwrap();
    assert_eq!(conversation, conversation::one(&cut.pool, id, None).await.unwrap());
    let newest = conversation::page(&cut.pool, id, main, 200, None).await.unwrap();
    let middle = newest.entries.get(newest.entries.len() / 2).map(|entry| entry.place);
    for (last_entries, before) in [(200, None), (2, None), (3, middle)] {
      let wanted = Wanted { conversation: main, upto: last.ordinal, last: last_entries, before };
      let expected = conversation::page(&cut.pool, id, main, last_entries, before).await.unwrap();
      let then = past(&whole.pool, &told, id, wanted).await;
      for (then, expected) in then.entries.iter().zip(&expected.entries) {
        assert_eq!(then, expected, "{wanted:?}");
      }
      assert_eq!((then.entries.len(), then.has_previous), (expected.entries.len(), expected.has_previous), "{wanted:?}");
    }
  }
}

#[tokio::test]
async fn the_past_at_any_position_is_the_read_model_of_the_log_up_to_there() {
  agrees(&everything(), &[agent(1), agent(2)]).await;
}

#[tokio::test]
async fn the_past_of_replies_that_are_begun_again_later_keeps_their_places() {
  for number in [1, 2, 3] {
    agrees(&random(number, 2, 30), &[agent(1), agent(2)]).await;
  }
}

#[tokio::test]
async fn before_anything_was_said_there_is_nothing() {
  let story = everything();
  let (told, model) = (Told::of(&story), Model::of(&story.decisions).await);
  let id = agent(1);
  assert_eq!(conversation::past::one(&model.pool, &told.at(id), id, None, 0).await.unwrap(), None);
  assert_eq!(audit::last_until(&model.pool, id, Timestamp(0)).await.unwrap(), 0);
  let wanted = Wanted { conversation: main_of(id), upto: 0, last: 50, before: None };
  assert_eq!(past(&model.pool, &told, id, wanted).await, Page { entries: Vec::new(), has_previous: false });
  assert_eq!(audit::whole_decision(&model.pool, id, story.ordinal(id) + 1).await.unwrap(), None, "that has not happened yet");
  let others = conversation::past::one(&model.pool, &told.at(id), id, Some(main_of(agent(2))), story.ordinal(id)).await.unwrap();
  assert_eq!(others, None, "another agent's conversation is none of this one's");
}

#[tokio::test]
async fn a_page_that_lies_too_far_back_is_refused_and_not_cut() {
  let story = random(7, 1, 40);
  let (told, model) = (Told::of(&story), Model::of(&story.decisions).await);
  let id = agent(1);
  let reach = Reach { first: 10, most: 40 };
  let wanted = |last, before| Wanted { conversation: main_of(id), upto: story.ordinal(id), last, before };
  let near = page_within(&model.pool, &told.at(id), id, wanted(3, None), reach).await.unwrap();
  assert_eq!(near, Past::Page(conversation::page(&model.pool, id, main_of(id), 3, None).await.unwrap()));
  assert_eq!(page_within(&model.pool, &told.at(id), id, wanted(200, None), reach).await.unwrap(), Past::TooFar);
  assert_eq!(page_within(&model.pool, &told.at(id), id, wanted(3, Some(20)), reach).await.unwrap(), Past::TooFar);
}
