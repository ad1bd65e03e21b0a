//! Which tokens a new node takes (`BootStrapper.getBootstrapTokens`).

use std::collections::{BTreeMap, BTreeSet};

use config::{Config, TokenMethod};
use env::Env;
use ring::{Method, Newcomer, allocate, random_tokens};
use schema::{Schema, Strategy};
use types::{Address, Token};

use super::error::JoinError;
use crate::identity::Identity;

/// Replicas that tokens are chosen for where nobody says and no keyspace of a user does.
const REPLICAS: u32 = 3;

/// What the choice depends on.
pub(super) struct Choice<'a> {
    pub env: &'a Env,
    pub config: &'a Config,
    pub schema: &'a Schema,
    pub identity: &'a Identity,
    /// This node's address.
    pub local: Address,
    /// The other nodes.
    pub nodes: Vec<ring::Node>,
    /// Tokens of others.
    pub taken: BTreeMap<Token, Address>,
}

impl Choice<'_> {
    /// Those of `initial_token`, or as many as `num_tokens` says: none that another has.
    pub fn tokens(&self) -> Result<BTreeSet<Token>, JoinError> {
        if !self.config.initial_tokens.is_empty() {
            return self.initial();
        }
        let count = self.config.num_tokens.max(1);
        let mut random = || self.env.random_u64();
        let center = &self.identity.data_center;
        let how = allocation(&self.config.joining.tokens, self.schema, center)?;
        let (method, replicas) = match how {
            Some(allocated) => allocated,
            None => {
                let taken: BTreeSet<Token> = self.taken.keys().copied().collect();
                return Ok(random_tokens(count, &taken, &mut random).into_iter().collect());
            }
        };
        let newcomer = Newcomer {
            address: self.local,
            data_center: &self.identity.data_center,
            rack: &self.identity.rack,
            num_tokens: count,
        };
        let tokens = allocate(&self.nodes, &newcomer, replicas, method, &mut random)?;
        Ok(tokens.into_iter().collect())
    }

    fn initial(&self) -> Result<BTreeSet<Token>, JoinError> {
        let tokens: BTreeSet<_> = self.config.initial_tokens.iter().copied().map(Token).collect();
        let owned = tokens.iter().find_map(|token| Some((token.0, *self.taken.get(token)?)));
        match owned {
            Some((token, owner)) => Err(JoinError::TokenTaken { token, owner }),
            None => Ok(tokens),
        }
    }
}

/// How a node of a data centre allocates its tokens, and for how many replicas; none at random.
///
/// # Errors
/// If there is no keyspace of the name that the settings have.
pub(in crate::topology) fn allocation(
    of: &config::TokenAllocation,
    schema: &Schema,
    data_center: &str,
) -> Result<Option<(Method, u32)>, JoinError> {
    let replicas = |strategy: &Strategy| self::replicas(strategy, data_center);
    let wanted = match &of.keyspace {
        Some(name) => {
            let keyspace = schema.keyspace(name);
            let of = keyspace.map(|of| replicas(&of.replication.strategy));
            Some(of.ok_or_else(|| JoinError::AllocationKeyspace(name.clone()))?)
        }
        None => of.local_replicas,
    };
    Ok(match of.method {
        TokenMethod::Random => None,
        TokenMethod::Cassandra => wanted.map(|replicas| (Method::Cassandra, replicas)),
        TokenMethod::Even => {
            Some((Method::Even, wanted.unwrap_or_else(|| most_replicas(schema, data_center))))
        }
    })
}

/// How many replicas a strategy has in a data centre.
fn replicas(strategy: &Strategy, data_center: &str) -> u32 {
    match strategy {
        Strategy::Simple(count) => count.all,
        Strategy::NetworkTopology(counts) => counts.get(data_center).map_or(0, |count| count.all),
        _ => 0,
    }
    .max(1)
}

/// The most that a keyspace of a user has in a data centre.
pub(in crate::topology) fn most_replicas(schema: &Schema, data_center: &str) -> u32 {
    let keyspaces = schema.keyspaces().values();
    let users = keyspaces
        .filter(|keyspace| !keyspace.is_virtual && !cql::is_system_keyspace(&keyspace.name));
    let most = users.map(|of| replicas(&of.replication.strategy, data_center)).max();
    most.unwrap_or(REPLICAS)
}
