//! The page's files and the headers that protect them.

use axum::http::header;
use reqwest::StatusCode;

use super::world::World;

#[tokio::test]
async fn every_route_of_the_page_is_the_page_and_a_missing_file_is_missing() {
  let world = World::new().await;
  for path in ["/", "/settings", "/conversations/1"] {
    let response = world.get(path).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let headers = response.headers();
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(headers[header::REFERRER_POLICY], "same-origin");
    assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
    assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
    let again = world.get(path).header(header::IF_NONE_MATCH, &headers[header::ETAG]).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(response.text().await.unwrap().contains("<html"));
  }
  for path in ["/assets/gone.js", "/gone.js", "/../Cargo.toml", "/%2e%2e/Cargo.toml"] {
    assert_eq!(world.get(path).send().await.unwrap().status(), StatusCode::NOT_FOUND, "{path}");
  }
  assert_eq!(world.post("/").send().await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn operations_need_no_sign_in() {
  let world = World::new().await;
  for path in ["/healthz", "/readyz", "/metrics"] {
    assert_eq!(world.get(path).send().await.unwrap().status(), StatusCode::OK, "{path}");
  }
}

#[tokio::test]
async fn while_the_process_starts_every_path_but_the_operations_says_that_it_must_be_asked_again() {
  let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
  let address = listener.local_addr().unwrap();
  let readiness = crate::Readiness::default();
  readiness.not_ready("start", "the process is starting");
  let shutdown = tokio_util::sync::CancellationToken::new();
  let router = crate::starting(readiness, std::sync::Arc::new(|| "pa_up 1\n".to_owned()));
  let serving = tokio_util::task::TaskTracker::new().spawn(crate::serve(listener, router, shutdown.clone()));
  let client = reqwest::Client::builder().timeout(super::world::PATIENCE).build().unwrap();
  for (method, path) in [("POST", "/graphql"), ("GET", "/graphql/ws"), ("GET", "/"), ("POST", "/files?name=a"), ("POST", "/hooks/lark/1")] {
    let request = client.request(method.parse().unwrap(), format!("http://{address}{path}")).body(if method == "POST" { "{}" } else { "" });
    let response = request.send().await.unwrap();
    assert_eq!((response.status(), &response.headers()[header::RETRY_AFTER]), (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap()), "{path}");
    let answer: serde_json::Value = response.json().await.unwrap();
    assert_eq!(answer["errors"][0]["extensions"]["code"], "UNAVAILABLE", "{path}");
  }
  for (path, status) in [("/healthz", 200), ("/readyz", 503), ("/metrics", 200)] {
    let response = client.get(format!("http://{address}{path}")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get(header::RETRY_AFTER)), (status, None), "{path}");
  }
  shutdown.cancel();
  serving.await.unwrap();
}

#[tokio::test]
async fn when_the_process_stops_it_takes_no_connection_more_and_ends() {
  let world = World::new().await;
  world.get("/").send().await.unwrap();
  world.shutdown.cancel();
  world.tasks.close();
  tokio::time::timeout(super::world::PATIENCE, world.tasks.wait()).await.expect("everything ends");
  assert!(tokio::net::TcpStream::connect(world.address).await.is_err());
}
