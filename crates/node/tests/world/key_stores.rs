//! Key stores that change while a node runs.

use std::process::Command;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use node::run_shard;
use server::ConnectionLimits;

use crate::guarded::texts;
use crate::{Serving, all, await_serving, config, told};

/// Where the node has its key and its certificate.
const STORE: &str = "/etc/node.pem";
/// Longer than between two looks at the stores.
const LOOKS: Duration = Duration::from_secs(25);

/// Two keys with their certificates, in PEM.
fn keys() -> [String; 2] {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../messaging/tests/certificates.sh");
    let made = Command::new("sh").arg(script).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = String::from_utf8(made.stdout).unwrap();
    ["one", "two"].map(|name| {
        let mut parts = text.split("== ").filter_map(|part| part.split_once('\n'));
        parts.find(|part| part.0 == name).unwrap().1.to_owned()
    })
}

/// A node whose clients are offered TLS with a key.
fn start(world: &World, key: String) -> Serving {
    let mut config = config();
    let section = format!("client_encryption_options: {{enabled: true, keystore: {STORE}}}\n");
    config.client_tls = config::Config::from_yaml(&section).unwrap().client_tls;
    let node = world.node("10.0.0.1".parse().unwrap());
    let serving = Serving::default();
    let (theirs, config) = (serving.clone(), std::sync::Arc::new(config));
    world.start(node, 2, move |env: env::Env, mesh: env::Mesh<node::Message>| {
        let (serving, config, key) = (theirs.clone(), config.clone(), key.clone());
        async move {
            if env.shard() == 0 {
                env.create_dir_all("/etc").await.unwrap();
                env.write_file_atomically(STORE, key.into_bytes()).await.unwrap();
            }
            let limits = ConnectionLimits::new();
            run_shard(env.clone(), mesh, config, limits, move |node, _| {
                *serving.borrow_mut() = Some(crate::Client {
                    env,
                    node: node.shard().clone(),
                    whole: std::rc::Rc::downgrade(node),
                });
            })
            .await
        }
    });
    await_serving(world, &serving);
    serving
}

fn replace(world: &World, serving: &Serving, key: &str) {
    let key = key.as_bytes().to_vec();
    told(world, serving, async move |client| {
        client.env.write_file_atomically(STORE, key).await.unwrap();
    });
    world.run_for(LOOKS).unwrap();
}

/// Lines about key stores, with their levels.
fn said(world: &World, serving: &Serving) -> Vec<(String, String)> {
    let lines = "SELECT level, message FROM system_views.system_logs".to_owned();
    let lines = texts(&all(world, serving, vec![lines]).remove(0).1);
    let lines = lines.chunks(2).map(|line| (line[0].clone(), line[1].clone()));
    lines.filter(|(_, message)| message.contains("key store")).collect()
}

#[test]
fn a_store_that_is_refused_is_said_once_a_change() {
    let world = World::new(1, WorldOptions::default());
    let [one, two] = keys();
    let serving = start(&world, one);
    assert_eq!(said(&world, &serving), []);
    replace(&world, &serving, "nothing");
    // the same is refused at each look, and said at the first
    world.run_for(LOOKS).unwrap();
    let lines = said(&world, &serving);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (level, message) = &lines[0];
    assert_eq!(level, "WARN");
    let begin = "cannot use the changed key stores of client_encryption_options, still using the \
                 previous ones: /etc/node.pem: ";
    assert!(message.len() > begin.len() && message.starts_with(begin), "{message}");
    replace(&world, &serving, &two);
    assert_eq!(said(&world, &serving).len(), 1);
    replace(&world, &serving, "nothing");
    assert_eq!(said(&world, &serving).len(), 2);
}
