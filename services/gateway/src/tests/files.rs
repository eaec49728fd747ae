//! Uploads and what is served of them.

use axum::http::header;
use futures::StreamExt;
use pa_domain::account::Role;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::world::World;
use crate::limits::UPLOAD_SILENT_MAX;

const HELLO_SHA256: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

async fn uploaded(request: RequestBuilder) -> Value {
  let response = request.send().await.unwrap();
  assert_eq!(response.status(), StatusCode::OK);
  response.json().await.unwrap()
}

impl World {
  fn upload(&self, name: &str, media_type: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
    let encoded: String = name.bytes().flat_map(|byte| ["%".to_owned(), hex::encode([byte])]).collect();
    self.post(&format!("/files?name={encoded}")).bearer_auth(&self.token).header(header::CONTENT_TYPE, media_type).body(body)
  }
}

#[tokio::test]
async fn an_upload_keeps_its_id_when_it_is_attached() {
  let world = World::new().await;
  let file = uploaded(world.upload("报告.txt", "text/plain", "hello")).await;
  assert_eq!((&file["name"], &file["mediaType"], &file["size"], &file["sha256"]), (&json!("报告.txt"), &json!("text/plain"), &json!(5), &json!(HELLO_SHA256)));
  let path = format!("/files/{}", file["id"].as_str().unwrap());
  assert_eq!(world.get(&path).bearer_auth(&world.token).send().await.unwrap().text().await.unwrap(), "hello");
  let input = json!({ "requestKey": "k1", "text": "", "attachmentIds": [file["id"]] });
  let payload = world.sent(input.clone()).await;
  let attached = &payload["message"]["attachments"][0];
  assert_eq!((&attached["id"], &attached["url"], &attached["sha256"]), (&file["id"], &json!(path), &json!(HELLO_SHA256)));
  assert_eq!(world.get(&path).bearer_auth(&world.token).send().await.unwrap().text().await.unwrap(), "hello");
  let projected = world.ask("query($at: Position) { conversation(atLeast: $at) { id } }", json!({ "at": payload["position"] })).await;
  assert_eq!(projected["extensions"]["stale"], json!(null));
  // The staged bytes are gone after a day, the attached ones are not; and the same request again is still the same request.
  sqlx::query("DELETE FROM ops.uploads").execute(&world.db.pool).await.unwrap();
  let served = world.get(&path).bearer_auth(&world.token).send().await.unwrap();
  assert_eq!(served.headers()[header::CONTENT_DISPOSITION], "attachment; filename=\"__.txt\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.txt");
  assert_eq!(served.headers()[header::CACHE_CONTROL], "private, max-age=86400, immutable");
  assert!(served.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("sandbox"));
  let etag = served.headers()[header::ETAG].clone();
  assert_eq!(served.text().await.unwrap(), "hello");
  let unchanged = world.get(&path).bearer_auth(&world.token).header(header::IF_NONE_MATCH, etag).send().await.unwrap();
  assert_eq!(unchanged.status(), StatusCode::NOT_MODIFIED);
  assert_eq!(world.sent(input).await["message"]["id"], payload["message"]["id"]);
}

#[tokio::test]
async fn a_file_is_its_owners_only() {
  let world = World::new().await;
  let file = uploaded(world.upload("a.png", "image/png", "x")).await;
  let path = format!("/files/{}", file["id"].as_str().unwrap());
  let shown = world.get(&path).bearer_auth(&world.token).send().await.unwrap();
  assert!(shown.headers()[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("inline"));
  let other = world.account("Grace", Role::Member).await;
  let other_token = world.bearer(other).await;
  assert_eq!(world.get(&path).bearer_auth(&other_token).send().await.unwrap().status(), StatusCode::NOT_FOUND);
  assert_eq!(world.get(&path).send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
  let stolen = json!({ "input": { "requestKey": "k", "text": "", "attachmentIds": [file["id"]] } });
  let answer = world.asked_by(&other_token, super::world::SEND, stolen).await;
  assert_eq!(answer["data"]["sendMessage"]["userErrors"][0]["code"], "NOT_FOUND");
  assert_eq!(answer["data"]["sendMessage"]["userErrors"][0]["field"], json!(["input", "attachmentIds"]));
}

#[tokio::test]
async fn a_file_beyond_twenty_megabytes_is_refused_and_nothing_is_kept() {
  let world = World::new().await;
  let max = usize::try_from(pa_blobs::FILE_BYTES_MAX).unwrap();
  let at_most = uploaded(world.upload("max", "application/octet-stream", vec![0; max])).await;
  assert_eq!(at_most["size"], max);
  for chunked in [false, true] {
    let bytes = vec![0; max + 1];
    let body = if chunked { reqwest::Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>(bytes)])) } else { bytes.into() };
    let response = world.upload("large", "application/octet-stream", body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE, "chunked: {chunked}");
    assert_eq!(response.json::<Value>().await.unwrap()["errors"][0]["extensions"]["code"], "TOO_LARGE");
  }
  let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.uploads").fetch_one(&world.db.pool).await.unwrap();
  assert_eq!(kept, 1);
}

#[tokio::test]
async fn an_upload_that_falls_silent_ends_and_nothing_is_kept() {
  let world = World::new().await;
  let body = futures::stream::iter([Ok::<_, std::io::Error>("a")]).chain(futures::stream::pending());
  let began = std::time::Instant::now();
  let patient = world.upload("silent", "text/plain", reqwest::Body::wrap_stream(body)).timeout(UPLOAD_SILENT_MAX + super::world::PATIENCE);
  let response = patient.send().await.unwrap();
  assert_eq!((response.status(), &response.headers()[header::CONNECTION]), (StatusCode::BAD_REQUEST, &"close".parse().unwrap()));
  assert_eq!(response.json::<Value>().await.unwrap()["errors"][0]["message"], "the body came too slowly");
  assert!(began.elapsed() >= UPLOAD_SILENT_MAX, "it got its time");
  let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.uploads").fetch_one(&world.db.pool).await.unwrap();
  assert_eq!(kept, 0);
}

#[tokio::test]
async fn a_form_is_refused_and_told_how_to_send_a_file() {
  let world = World::new().await;
  let form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--x--\r\n";
  for media_type in ["multipart/form-data; boundary=x", "Multipart/Form-Data; boundary=x", "multipart/mixed; boundary=x"] {
    let response = world.upload("a.txt", media_type, form).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{media_type}");
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["errors"][0]["extensions"]["code"], "UNSUPPORTED_MEDIA_TYPE");
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("--data-binary") && message.contains("Content-Type"), "{message}");
  }
  let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.uploads").fetch_one(&world.db.pool).await.unwrap();
  assert_eq!(kept, 0);
}

#[tokio::test]
async fn names_are_cleaned_and_a_media_type_must_be_one() {
  let world = World::new().await;
  assert_eq!(uploaded(world.upload("../../etc/passwd", "text/plain", "x")).await["name"], "passwd");
  assert_eq!(uploaded(world.upload("", "text/plain", "x")).await["name"], "file");
  assert_eq!(uploaded(world.post("/files").bearer_auth(&world.token).body("x")).await["mediaType"], "application/octet-stream");
  assert_eq!(world.upload("a", "nonsense", "x").send().await.unwrap().status(), StatusCode::BAD_REQUEST);
}
