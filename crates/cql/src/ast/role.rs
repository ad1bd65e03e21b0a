//! Roles, users, permissions and identities.

use std::fmt;

use super::{QualifiedName, RawType};

/// A statement about roles, permissions or identities.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each variant is the statement it is named after
pub enum RoleStatement {
    Create(CreateRole),
    Alter(AlterRole),
    Drop(DropRole),
    List(ListRoles),
    ListUsers,
    GrantRole(GrantRole),
    RevokeRole(GrantRole),
    Grant(GrantPermissions),
    Revoke(GrantPermissions),
    ListPermissions(ListPermissions),
    AddIdentity(AddIdentity),
    DropIdentity(DropIdentity),
}

/// What nobody may read who looks at a statement, a trace or a dump of one.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(crate::REDACTED)
    }
}

/// `CREATE ROLE` or `CREATE USER`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRole {
    /// Its name; unquoted role names are lower-cased, users' names are not.
    pub name: String,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The options. `LOGIN` and `SUPERUSER` are always set: false by default, LOGIN true for CREATE
    /// USER.
    pub options: RoleOptions,
}

/// `ALTER ROLE` or `ALTER USER`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterRole {
    /// Its name.
    pub name: String,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The options that the text gives.
    pub options: RoleOptions,
}

/// `DROP ROLE` or `DROP USER`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropRole {
    /// Its name.
    pub name: String,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// What follows `WITH`. Each option occurs at most once, and not both kinds of password.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleOptions {
    /// `PASSWORD`.
    pub password: Option<Secret>,
    /// `HASHED PASSWORD`: a bcrypt hash.
    pub hashed_password: Option<Secret>,
    /// `SUPERUSER`.
    pub superuser: Option<bool>,
    /// `LOGIN`.
    pub login: Option<bool>,
    /// `OPTIONS`: free-form.
    pub custom: Option<Vec<(String, String)>>,
    /// `ACCESS TO ..DATACENTERS`.
    pub datacenters: Option<Access>,
    /// `ACCESS FROM ..CIDRS`.
    pub cidr_groups: Option<Access>,
}

/// Where a role may connect to or from.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// `ALL`.
    All,
    /// The named ones, at least one.
    Only(Vec<String>),
}

/// `LIST ROLES`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListRoles {
    /// `OF role`.
    pub of: Option<String>,
    /// False after `NORECURSIVE`.
    pub recursive: bool,
}

/// `GRANT role TO grantee` or `REVOKE role FROM grantee`.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantRole {
    /// What is granted.
    pub role: String,
    /// To (or from) whom.
    pub grantee: String,
}

/// `GRANT permissions ON resource TO grantee`, or REVOKE.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantPermissions {
    /// Those of the named permissions that apply to the resource, at least one, without repetition.
    pub permissions: Vec<Permission>,
    /// On what.
    pub resource: Resource,
    /// To (or from) whom.
    pub grantee: String,
}

/// `LIST permissions [ON resource] [OF grantee]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPermissions {
    /// The named permissions, all of them for `ALL`.
    pub permissions: Vec<Permission>,
    /// `ON`.
    pub resource: Option<Resource>,
    /// `OF`.
    pub of: Option<String>,
    /// False after `NORECURSIVE`.
    pub recursive: bool,
}

/// The permissions that the grammar knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Permission {
    Create,
    Alter,
    Drop,
    Select,
    Modify,
    Authorize,
    Describe,
    Execute,
    Unmask,
    SelectMasked,
}

impl Permission {
    /// All of them.
    pub const ALL: [Permission; 10] = [
        Self::Create,
        Self::Alter,
        Self::Drop,
        Self::Select,
        Self::Modify,
        Self::Authorize,
        Self::Describe,
        Self::Execute,
        Self::Unmask,
        Self::SelectMasked,
    ];
}

/// What a permission is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Resource {
    /// `ALL KEYSPACES`.
    AllKeyspaces,
    /// `KEYSPACE ks`.
    Keyspace(String),
    /// `ALL TABLES IN KEYSPACE ks`.
    AllTables(String),
    /// `[TABLE] t`.
    Table(QualifiedName),
    /// `ALL ROLES`.
    AllRoles,
    /// `ROLE r`.
    Role(String),
    /// `ALL FUNCTIONS`.
    AllFunctions,
    /// `ALL FUNCTIONS IN KEYSPACE ks`.
    FunctionsIn(String),
    /// `FUNCTION ks.f(types)`; always qualified.
    Function(QualifiedName, Vec<RawType>),
    /// `ALL MBEANS`.
    AllMbeans,
    /// `MBEAN 'name'`, or `MBEANS 'pattern'` with its flag set.
    Mbean {
        /// The JMX object name as written (Cassandra stores the canonical form: keys sorted).
        name: String,
        /// `MBEANS`.
        pattern: bool,
    },
}

impl Resource {
    /// Which permissions make sense on it (the `*_PERMISSIONS` sets of Cassandra's resource
    /// classes).
    pub fn applies(&self, permission: Permission) -> bool {
        use Permission as P;
        let set: &[P] = match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) => &[
                P::Create,
                P::Alter,
                P::Drop,
                P::Select,
                P::Modify,
                P::Authorize,
                P::Unmask,
                P::SelectMasked,
            ],
            Self::Table(_) => {
                &[P::Alter, P::Drop, P::Select, P::Modify, P::Authorize, P::Unmask, P::SelectMasked]
            }
            Self::AllRoles => &[P::Create, P::Alter, P::Drop, P::Authorize, P::Describe],
            Self::Role(_) => &[P::Alter, P::Drop, P::Authorize, P::Describe],
            Self::AllFunctions | Self::FunctionsIn(_) => {
                &[P::Create, P::Alter, P::Drop, P::Authorize, P::Execute]
            }
            Self::Function(..) => &[P::Alter, P::Drop, P::Authorize, P::Execute],
            Self::AllMbeans | Self::Mbean { .. } => {
                &[P::Authorize, P::Describe, P::Execute, P::Modify, P::Select]
            }
        };
        set.contains(&permission)
    }
}

/// `ADD IDENTITY 'i' TO ROLE 'r'`.
#[derive(Debug, Clone, PartialEq)]
pub struct AddIdentity {
    /// The identity.
    pub identity: String,
    /// The role, its case kept.
    pub role: String,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
}

/// `DROP IDENTITY 'i'`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropIdentity {
    /// The identity.
    pub identity: String,
    /// `IF EXISTS`.
    pub if_exists: bool,
}
