//! Actions: a card shows exactly what would be done, and only what waits for the owner is pending.

use pa_domain::call::{Class, Gate, GateKind};
use pa_domain::{Timestamp, task::PauseReason};

use super::{Action, Kind, State, one, pending};
use crate::testing::story::{Story, agent};
use crate::testing::tasks::{EMAIL, Told};
use crate::tests::{Model, project};

fn begun() -> (Story, Told) {
  let mut story = Story::default();
  story.create(agent(1));
  let task = story.task(agent(1), "Send", "Send it.");
  story.begin_task(task, 1);
  (story, task)
}

/// What waits, the same in batches of any size.
async fn waiting(story: &Story) -> Vec<Action> {
  let mut seen = Vec::new();
  for size in [1, 500] {
    let model = Model::new().await;
    project(&model.store, &story.decisions, size).await;
    seen.push(pending(&model.pool, agent(1)).await.unwrap());
  }
  assert_eq!(seen[0], seen[1]);
  seen.remove(0)
}

/// Proves USE-14.
#[tokio::test]
async fn a_card_shows_the_whole_action_until_it_is_decided() {
  let (mut story, told) = begun();
  let held = story.hold_email(told, (1, 0));
  let [card] = <[Action; 1]>::try_from(waiting(&story).await).unwrap();
  assert_eq!((card.id, card.kind, card.state, card.call), (held.card.0, Kind::Card, State::Pending, held.call));
  assert_eq!((card.action.as_str(), card.target.as_str(), card.gate, card.scope), (EMAIL, "kim@example.org · Numbers", Some(GateKind::Email), None));
  assert_eq!((card.job, card.title.as_deref()), (told.id.into(), Some("Send")));
  story.approve(told, held, None);
  assert_eq!(waiting(&story).await, []);
  let model = Model::of(&story.decisions).await;
  let approved = one(&model.pool, agent(1), held.card.0).await.unwrap().unwrap();
  assert_eq!((approved.state, approved.settled), (State::Approved, Some(story.now())));
}

/// Proves SID-12, SID-13: what is under way asks for nothing; what nobody knows does.
#[tokio::test]
async fn an_effect_waits_for_the_owner_once_its_outcome_is_unknown() {
  let (mut story, told) = begun();
  let held = story.hold_email(told, (1, 0));
  story.approve(told, held, None);
  story.begin_task(told, 2);
  let call = story.begin_call(told, (1, 0), ("pa_email_send", Class::External, EMAIL), Some(held.card));
  assert_eq!(waiting(&story).await, []);
  story.unknown(told, call);
  let [effect] = <[Action; 1]>::try_from(waiting(&story).await).unwrap();
  assert_eq!((effect.id, effect.kind, effect.state), (call.0, Kind::Effect, State::Unknown));
  assert_eq!((effect.gate, effect.target.as_str(), effect.action.as_str()), (Some(GateKind::Email), "kim@example.org · Numbers", EMAIL));
  story.settle(told, call, true);
  assert_eq!(waiting(&story).await, []);
  story.noted(told, call);
  let model = Model::of(&story.decisions).await;
  let settled = one(&model.pool, agent(1), call.0).await.unwrap().unwrap();
  assert_eq!((settled.state, settled.reason.as_str()), (State::Reconciled, "EXECUTED"), "the owner's word stands");
}

#[tokio::test]
async fn an_effect_of_an_allowed_scope_has_its_own_row_and_not_the_target_of_another() {
  let (mut story, told) = begun();
  let gate = Gate { kind: GateKind::Computer, target: "Mac · Mail · Inbox".into(), scope: Some("mail@mac".into()), valid_until_ms: Some(Timestamp(90)) };
  let held = story.hold(told, (1, 0), gate, "{}");
  let [card] = <[Action; 1]>::try_from(waiting(&story).await).unwrap();
  assert_eq!((card.scope.as_deref(), card.valid_until), (Some("mail@mac"), Some(Timestamp(90))));
  story.approve(told, held, Some("mail@mac"));
  story.begin_task(told, 2);
  let other = story.begin_call(told, (2, 0), ("pa_computer_act", Class::External, r#"{"steps":[]}"#), Some(held.card));
  story.unknown(told, other);
  let [effect] = <[Action; 1]>::try_from(waiting(&story).await).unwrap();
  assert_eq!((effect.id, effect.gate, effect.target.as_str(), effect.action.as_str()), (other.0, Some(GateKind::Computer), "", r#"{"steps":[]}"#));
  let model = Model::of(&story.decisions).await;
  assert_eq!(one(&model.pool, agent(1), held.card.0).await.unwrap().unwrap().state, State::Allowed);
}

#[tokio::test]
async fn rejected_and_withdrawn_cards_wait_no_longer_and_pauses_leave_them() {
  let (mut story, told) = begun();
  let rejected = story.hold_email(told, (1, 0));
  story.reject(told, rejected, (1, 0));
  let withdrawn = story.hold_email(told, (2, 0));
  story.instruct(told, "wait", Some((withdrawn, (2, 0))));
  let kept = story.hold_email(told, (3, 0));
  story.pause(told, PauseReason::Asked);
  assert_eq!(waiting(&story).await.iter().map(|card| card.id).collect::<Vec<_>>(), [kept.card.0]);
  let model = Model::of(&story.decisions).await;
  let of = async |id: pa_domain::ActionId| one(&model.pool, agent(1), id.0).await.unwrap().unwrap();
  assert_eq!(of(rejected.card).await.state, State::Rejected);
  let withdrawn = of(withdrawn.card).await;
  assert_eq!((withdrawn.state, withdrawn.reason.as_str()), (State::Withdrawn, "INSTRUCTED"));
  assert_eq!(one(&model.pool, agent(2), kept.card.0).await.unwrap(), None, "to anybody else there is none");
}
